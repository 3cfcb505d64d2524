-- The strict actions of a session are decided in the order of their numbers, from the first, without gaps (C9).
SELECT run, action, position, sub, 'it is decided after number ' || CAST(before AS STRING) AS because
FROM (
    SELECT run, action, position, sub, number,
           coalesce(lag(number) OVER (PARTITION BY run, session ORDER BY position, sub, action), 0) AS before
    FROM (SELECT DISTINCT run, action, session, number, position, sub FROM decision WHERE NOT is_relaxed) strict
) numbered
WHERE number <> before + 1
