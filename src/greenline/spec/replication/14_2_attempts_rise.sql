-- The attempts that a process agrees to rise through all its lives: by component, then by attempt (notes, GAP 15).
SELECT run, process, incarnation, local_index, position AS prim, sub AS attempt,
       'its last attempt was ' || CAST(prim_before AS STRING) || '.' || CAST(attempt_before AS STRING) AS because
FROM (
    SELECT run, process, incarnation, local_index, position, sub,
           lag(position) OVER lives AS prim_before,
           lag(sub) OVER lives AS attempt_before
    FROM step
    WHERE kind = 'cpc'
    WINDOW lives AS (PARTITION BY run, process ORDER BY incarnation, local_index)
) tried
WHERE position < prim_before OR (position = prim_before AND sub <= attempt_before)
