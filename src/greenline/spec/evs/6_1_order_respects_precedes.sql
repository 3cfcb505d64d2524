-- Specification 6.1. There is a logical time that rises along every process and from sending to delivering.
-- A basic message carries no causality, so logical time need not rise from its sending to its delivery.
WITH keyed AS (
    SELECT run, process, n, coalesce(ord, before) AS ord, ord IS NULL AS is_before, kind, message, service,
           lag(coalesce(ord, before)) OVER (PARTITION BY run, process ORDER BY n) AS last_ord
    FROM certificate
),
sends AS (
    SELECT run, message, ord, row_number() OVER (PARTITION BY run, message ORDER BY process, n) AS place
    FROM keyed
    WHERE kind = 'send'
),
first_send AS (SELECT run, message, ord FROM sends WHERE place = 1)
SELECT k.run, k.process, k.kind, k.message, 'no logical time can rise up to it' AS because
FROM keyed k
LEFT JOIN first_send s ON s.run = k.run AND s.message = k.message
WHERE k.ord <= k.last_ord
   OR (k.kind = 'deliver' AND k.ord <= s.ord AND (k.service IS DISTINCT FROM 'basic' OR k.is_before))
