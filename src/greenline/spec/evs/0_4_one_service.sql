-- A message has one known service: as it was generated, so it is delivered everywhere.
SELECT run, message, 'it has no service, an unknown one, or several' AS because
FROM event
WHERE kind IN ('generate', 'deliver')
GROUP BY run, message
HAVING count(DISTINCT service) <> 1
    OR count(CASE WHEN service IN ('basic', 'causal', 'agreed', 'safe') THEN 1 END) < count(*)
