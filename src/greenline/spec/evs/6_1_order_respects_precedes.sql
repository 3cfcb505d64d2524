-- Specification 6.1. There is a logical time that rises along every process and from sending to delivering.
-- A basic message carries no causality, so logical time need not rise from its sending to its delivery.
WITH keyed AS (
    SELECT c.run, c.process, c.n, coalesce(c.ord, c.before) AS ord, c.ord IS NULL AS is_before, e.kind, e.message,
           lag(coalesce(c.ord, c.before)) OVER (PARTITION BY c.run, c.process ORDER BY c.n) AS last_ord
    FROM certificate c
    JOIN event e ON e.run = c.run AND e.process = c.process AND e.n = c.n
),
sends AS (
    SELECT run, message, ord, row_number() OVER (PARTITION BY run, message ORDER BY process, n) AS place
    FROM keyed
    WHERE kind = 'send'
),
first_send AS (SELECT run, message, ord FROM sends WHERE place = 1)
SELECT k.run, k.process, k.kind, k.message, 'no logical time can rise up to it' AS because
FROM keyed k
LEFT JOIN message m ON m.run = k.run AND m.message = k.message
LEFT JOIN first_send s ON s.run = k.run AND s.message = k.message
WHERE k.ord <= k.last_ord
   OR (k.kind = 'deliver' AND k.ord <= s.ord AND (m.service IS DISTINCT FROM 'basic' OR k.is_before))
