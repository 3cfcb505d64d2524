-- Specification 2.3. What follows the delivery of a configuration at one process follows it at all.
WITH placed AS (
    SELECT run, process, conf, cut FROM certificate WHERE kind IN ('regular', 'transitional')
),
first_cut AS (SELECT run, conf, min(cut) AS cut FROM placed GROUP BY run, conf)
SELECT p.run, p.process, p.conf, 'what follows it elsewhere comes before it here' AS because
FROM placed p
JOIN first_cut f ON f.run = p.run AND f.conf = p.conf
WHERE p.cut > f.cut
