-- Specification 1.4. A message is sent once, in a regular configuration, and delivered to a process at most once.
-- Reading S-a: also not twice in the same configuration.
SELECT run, min(process) AS process, message, 'it was sent ' || CAST(count(*) AS STRING) || ' times' AS because
FROM sent
GROUP BY run, message
HAVING count(*) > 1
UNION ALL
SELECT run, process, message, 'it was sent in ' || coalesce(conf, '(none)') || ', which is no regular configuration' AS because
FROM sent
WHERE conf_kind IS DISTINCT FROM 'regular'
UNION ALL
SELECT run, process, message, 'it was delivered ' || CAST(count(*) AS STRING) || ' times' AS because
FROM delivered
GROUP BY run, process, message
HAVING count(*) > 1
