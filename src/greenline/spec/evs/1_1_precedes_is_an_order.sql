-- Specification 1.1. The precedes relation (a process's own order, and sending before delivering) has no cycle.
WITH keyed AS (
    SELECT run, process, n, before, kind, message,
           lag(before) OVER (PARTITION BY run, process ORDER BY n) AS last_before
    FROM certificate
),
sends AS (
    SELECT run, message, before, row_number() OVER (PARTITION BY run, message ORDER BY process, n) AS place
    FROM keyed
    WHERE kind = 'send'
),
first_send AS (SELECT run, message, before FROM sends WHERE place = 1)
SELECT k.run, k.process, k.kind, k.message, 'it comes before what it must follow: the events wait for each other' AS because
FROM keyed k
LEFT JOIN first_send s ON s.run = k.run AND s.message = k.message
WHERE k.before <= k.last_before OR (k.kind = 'deliver' AND k.before <= s.before)
