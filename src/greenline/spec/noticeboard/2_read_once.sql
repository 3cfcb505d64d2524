-- Nobody reads a notice twice in one life.
SELECT run, process, incarnation, message, 'it was read ' || CAST(count(*) AS STRING) || ' times in one life' AS because
FROM trace
WHERE kind = 'deliver'
GROUP BY run, process, incarnation, message
HAVING count(*) > 1
