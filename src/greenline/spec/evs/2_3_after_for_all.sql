-- Specification 2.3. What follows the delivery of a configuration at one process follows it at all.
WITH placed AS (
    SELECT e.run, e.process, e.n, e.conf, c.cut
    FROM conf_event e
    JOIN certificate c ON c.run = e.run AND c.process = e.process AND c.n = e.n
),
first_cut AS (SELECT run, conf, min(cut) AS cut FROM placed GROUP BY run, conf)
SELECT p.run, p.process, p.conf, 'what follows it elsewhere comes before it here' AS because
FROM placed p
JOIN first_cut f ON f.run = p.run AND f.conf = p.conf
WHERE p.cut > f.cut
