-- Specification 2.1. Who ends in c, ends there with every member of c. Reading S-d: asked of quiet runs only.
WITH last_conf AS (
    SELECT x.run, x.process, e.conf
    FROM ended x
    JOIN conf_event e ON e.run = x.run AND e.process = x.process AND e.incarnation = x.incarnation
    WHERE x.is_up AND x.is_quiet AND e.next_n IS NULL
)
SELECT l.run, l.process, l.conf, m.process AS other,
       'it ends in ' || l.conf || ', but ' || m.process || ' does not' AS because
FROM last_conf l
JOIN member m ON m.run = l.run AND m.conf = l.conf
ANTI JOIN last_conf o ON o.run = l.run AND o.process = m.process AND o.conf = l.conf
