-- Specification 4. Processes that go together from c directly to the next configuration deliver the same in c.
-- Reading S-b: directly, at both of them.
WITH moves AS (SELECT run, process, incarnation, conf, next_conf FROM conf_event WHERE next_conf IS NOT NULL),
movers AS (
    SELECT run, conf, next_conf, count(DISTINCT process) AS processes
    FROM moves
    GROUP BY run, conf, next_conf
    HAVING count(DISTINCT process) > 1
),
delivered_by AS (
    SELECT DISTINCT m.run, m.conf, m.next_conf, d.message, d.process
    FROM moves m
    JOIN delivered d ON d.run = m.run AND d.process = m.process AND d.incarnation = m.incarnation AND d.conf = m.conf
),
counted AS (
    SELECT run, conf, next_conf, message, count(*) AS processes FROM delivered_by GROUP BY run, conf, next_conf, message
)
SELECT c.run, c.message, c.conf, c.next_conf,
       'of ' || CAST(m.processes AS STRING) || ' processes that went on together, only '
       || CAST(c.processes AS STRING) || ' delivered it' AS because
FROM counted c
JOIN movers m ON m.run = c.run AND m.conf = c.conf AND m.next_conf = c.next_conf
WHERE c.processes < m.processes
