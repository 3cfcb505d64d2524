-- Specification 2.4. What precedes the delivery of a configuration at one process precedes it at all.
WITH placed AS (
    SELECT run, process, conf, cut FROM certificate WHERE kind IN ('regular', 'transitional')
),
last_cut AS (SELECT run, conf, max(cut) AS cut FROM placed GROUP BY run, conf)
SELECT p.run, p.process, p.conf, 'what precedes it elsewhere comes after it here' AS because
FROM placed p
JOIN last_cut l ON l.run = p.run AND l.conf = p.conf
WHERE p.cut < l.cut
