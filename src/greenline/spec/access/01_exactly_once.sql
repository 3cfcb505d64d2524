-- An action is decided at one place, the same at every replica, however often and wherever it was asked for
-- (Integrity).
SELECT run, action, 'it is decided at ' || CAST(count(*) AS STRING) || ' places' AS because
FROM (SELECT DISTINCT run, action, position, sub FROM decision) places
GROUP BY run, action
HAVING count(*) > 1
