-- How much of the order a server has had on disk: by the end of the last life in which it was in a configuration, and,
-- under no configuration, by the end of the run. Who is in a configuration hears only from lives that were in it, or
-- before it. What a life had on disk at its end is also what the next one recovers. A newcomer counts as having what is
-- before its join: the snapshot that it gets holds at least that (GAP 29).
WITH found AS (
    SELECT life, run, process, incarnation, recovered, durable,
           lead(recovered) OVER (PARTITION BY run, process ORDER BY incarnation) AS left_behind
    FROM life
),
sofar AS (
    SELECT life, run, process,
           max(greatest(coalesce(recovered, 0), coalesce(durable, 0), coalesce(left_behind, 0)))
               OVER (PARTITION BY run, process ORDER BY incarnation) AS position
    FROM found
),
last_stay AS (SELECT run, process, conf, max(life) AS life FROM sojourn GROUP BY run, process, conf),
had AS (
    SELECT s.run, s.process, s.conf, d.position
    FROM last_stay s
    JOIN sofar d ON d.life = s.life
    UNION ALL
    SELECT run, process, '', position FROM sofar
    UNION ALL
    SELECT run, server, '', last_since FROM seat
)
SELECT h.run, h.process, h.conf, max(greatest(h.position, coalesce(s.last_since, 0))) AS position
FROM had h
LEFT JOIN seat s ON s.run = h.run AND s.server = h.process
GROUP BY h.run, h.process, h.conf
