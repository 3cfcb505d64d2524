-- An action is applied at one place for each time that it was asked for and not refused: never at more (notes I12).
WITH placed AS (SELECT DISTINCT run, process, action, position, sub FROM applied WHERE is_kept),
counted AS (SELECT run, process, action, count(*) AS places FROM placed GROUP BY run, process, action),
asked AS (SELECT DISTINCT run FROM operation)
SELECT c.run, c.process, c.action,
       'it is at ' || CAST(c.places AS STRING) || ' places, and was taken '
       || CAST(coalesce(o.calls - o.refusals, 0) AS STRING) || ' times' AS because
FROM counted c
JOIN asked a ON a.run = c.run
LEFT JOIN operation o ON o.run = c.run AND o.action = c.action
WHERE c.places > coalesce(o.calls - o.refusals, 0)
