-- Once a session is over it stays so: nothing of it, strict or relaxed, is decided after the place where that was said.
WITH expired AS (
    SELECT run, split_part(replace(action, '~', '/'), '/', 1) AS session, min(position) AS position
    FROM applied
    WHERE is_kept AND verdict = 'expired'
    GROUP BY run, split_part(replace(action, '~', '/'), '/', 1)
)
SELECT d.run, d.action, d.position, d.sub, 'its session was over at ' || CAST(e.position AS STRING) AS because
FROM decision d
JOIN expired e ON e.run = d.run AND e.session = d.session AND e.position < d.position
