-- Specification 2.4. What precedes the delivery of a configuration at one process precedes it at all.
WITH placed AS (
    SELECT e.run, e.process, e.n, e.conf, c.cut
    FROM conf_event e
    JOIN certificate c ON c.run = e.run AND c.process = e.process AND c.n = e.n
),
last_cut AS (SELECT run, conf, max(cut) AS cut FROM placed GROUP BY run, conf)
SELECT p.run, p.process, p.conf, 'what precedes it elsewhere comes after it here' AS because
FROM placed p
JOIN last_cut l ON l.run = p.run AND l.conf = p.conf
WHERE p.cut < l.cut
