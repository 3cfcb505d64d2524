-- How much of the order a server has had on disk: by the end of the last life in which it was in a configuration, and, under
-- no configuration, by the end of the run. Who is in a configuration hears only from lives that were in it, or before it.
-- What a life had on disk at its end is also what the next one recovers.
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
last_stay AS (SELECT run, process, conf, max(life) AS life FROM sojourn GROUP BY run, process, conf)
SELECT s.run, s.process, s.conf, d.position
FROM last_stay s
JOIN sofar d ON d.life = s.life
UNION ALL
SELECT run, process, '', max(position) FROM sofar GROUP BY run, process
