-- An action is decided at one place at most, wherever and how often it was asked for, and only if it was (notes I12).
WITH placed AS (SELECT DISTINCT run, process, action, position, sub FROM applied WHERE is_kept AND is_decided),
counted AS (SELECT run, process, action, count(*) AS places FROM placed GROUP BY run, process, action),
asked AS (SELECT DISTINCT run FROM operation)
SELECT c.run, c.process, c.action,
       CASE WHEN c.places > 1 THEN 'it is decided at ' || CAST(c.places AS STRING) || ' places'
            ELSE 'nobody asked for it' END AS because
FROM counted c
JOIN asked a ON a.run = c.run
LEFT JOIN operation o ON o.run = c.run AND o.action = c.action
WHERE c.places > 1 OR o.action IS NULL
