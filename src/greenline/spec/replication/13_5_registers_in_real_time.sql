-- Registers are linearizable: what is read was written, before the read returned; and by the zones of their values
-- (from the first return of an operation on it to the last call of one, or the other way round) the writes can be
-- ordered: zones in which a value must have stood do not overlap, and no value comes and goes within such a zone.
WITH touched AS (
    SELECT run, action, verb, object AS register, called, coalesce(returned, 4000000000000000000) AS returned, answer,
           CASE WHEN verb = 'write' THEN argument ELSE substr(answer, length(object) + 2) END AS value
    FROM operation
    WHERE (verb = 'write' AND NOT coalesce(is_conflict, FALSE)) OR (verb = 'read' AND object LIKE 'r%' AND returned IS NOT NULL)
),
written AS (SELECT run, register, value, min(called) AS called FROM touched WHERE verb = 'write' GROUP BY run, register, value),
zone AS (
    SELECT run, register, value,
           CASE WHEN value = '-' THEN -1 ELSE min(returned) END AS first_return,
           max(called) AS last_call
    FROM touched
    GROUP BY run, register, value
),
-- A value must have stood from `since` to `until`; or it came and went between them.
period AS (
    SELECT run, register, value, first_return < last_call AS stood,
           least(first_return, last_call) AS since,
           greatest(first_return, last_call) AS until
    FROM zone
),
followed AS (
    SELECT run, register, value, stood, since, until,
           max(CASE WHEN stood THEN until END)
               OVER (PARTITION BY run, register ORDER BY since ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS held
    FROM period
)
SELECT t.run, t.register, t.value, 'it was answered ' || t.answer || ' to ' || t.action AS because
FROM touched t
WHERE t.answer <> t.register || ' ' || t.value
UNION ALL
SELECT t.run, t.register, t.value, t.action || ' read it, and nobody had been asked to write it'
FROM touched t
LEFT JOIN written w ON w.run = t.run AND w.register = t.register AND w.value = t.value
WHERE t.verb = 'read' AND t.value <> '-' AND (w.called IS NULL OR w.called > t.returned)
UNION ALL
SELECT run, register, value, 'another value stood when it must have'
FROM followed
WHERE (stood AND held > since) OR (NOT stood AND held > until)
