-- Processes that go together from c through T to d deliver the same messages in c and in T, the agreed ones in one order.
WITH route AS (
    SELECT t.run, t.process, t.incarnation, t.prev_conf AS old, t.conf AS trans, t.next_conf AS new
    FROM conf_event t
    WHERE t.kind = 'transitional' AND t.prev_conf IS NOT NULL AND t.next_conf IS NOT NULL
),
together AS (SELECT run, old, trans, new, count(DISTINCT process) AS processes FROM route GROUP BY run, old, trans, new),
numbered AS (
    SELECT run, process, incarnation, conf, message,
           CASE WHEN service IN ('agreed', 'safe') THEN row_number() OVER (
               PARTITION BY run, process, incarnation, conf, CASE WHEN service IN ('agreed', 'safe') THEN 1 ELSE 0 END
               ORDER BY n
           ) ELSE 0 END AS place
    FROM delivered
),
walked AS (
    SELECT r.run, r.process, r.old, r.trans, r.new, d.conf, d.place, d.message
    FROM route r
    JOIN numbered d
      ON d.run = r.run AND d.process = r.process AND d.incarnation = r.incarnation AND d.conf = r.old
    UNION ALL
    SELECT r.run, r.process, r.old, r.trans, r.new, d.conf, d.place, d.message
    FROM route r
    JOIN numbered d
      ON d.run = r.run AND d.process = r.process AND d.incarnation = r.incarnation AND d.conf = r.trans
),
counted AS (
    SELECT run, old, trans, new, conf, place, message, count(DISTINCT process) AS processes
    FROM walked
    GROUP BY run, old, trans, new, conf, place, message
)
SELECT c.run, c.message, c.conf, c.new AS next_conf,
       'of ' || CAST(t.processes AS STRING) || ' processes that went together, '
       || CAST(c.processes AS STRING) || ' delivered it there and at that place' AS because
FROM counted c
JOIN together t ON t.run = c.run AND t.old = c.old AND t.trans = c.trans AND t.new = c.new
WHERE c.processes < t.processes
