-- Of two that read the same value of a register and replace it, one at most was told to have done so, unless the value
-- was written twice (judged from what clients asked and were told, never from positions).
WITH replaced AS (
    SELECT run, object, split_part(substr(request, instr(request, ' if ') + 4), ' ', 2) AS value, count(*) AS times
    FROM operation
    WHERE verb = 'write' AND returned IS NOT NULL AND NOT is_conflict
      AND split_part(substr(request, instr(request, ' if ') + 4), ' ', 1) = object AND instr(request, ' if ') > 0
    GROUP BY run, object, split_part(substr(request, instr(request, ' if ') + 4), ' ', 2)
),
written AS (
    SELECT run, object, argument AS value, count(*) AS times FROM operation WHERE verb = 'write' GROUP BY run, object, argument
)
SELECT r.run, r.object, r.value, 'it was replaced ' || CAST(r.times AS STRING) || ' times' AS because
FROM replaced r
LEFT JOIN written w ON w.run = r.run AND w.object = r.object AND w.value = r.value
WHERE r.times > greatest(1, coalesce(w.times, 1))
