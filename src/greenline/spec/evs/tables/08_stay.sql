-- A process in a family, in one life: did it crash there, and did it go on to another configuration?
WITH last_conf AS (SELECT run, process, incarnation, max(n) AS n FROM conf_event GROUP BY run, process, incarnation),
in_family AS (
    SELECT e.run, e.process, e.incarnation, c.reg AS family, max(e.n) AS n
    FROM conf_event e
    JOIN conf c ON c.run = e.run AND c.conf = e.conf
    WHERE c.reg IS NOT NULL
    GROUP BY e.run, e.process, e.incarnation, c.reg
),
crashes AS (
    SELECT DISTINCT e.run, e.process, e.incarnation, c.reg AS family
    FROM event e
    JOIN conf c ON c.run = e.run AND c.conf = e.conf
    WHERE e.kind = 'crash'
)
SELECT f.run, f.process, f.incarnation, f.family, l.n > f.n AS has_left, x.family IS NOT NULL AS has_crashed
FROM in_family f
JOIN last_conf l ON l.run = f.run AND l.process = f.process AND l.incarnation = f.incarnation
LEFT JOIN crashes x
  ON x.run = f.run AND x.process = f.process AND x.incarnation = f.incarnation AND x.family = f.family
