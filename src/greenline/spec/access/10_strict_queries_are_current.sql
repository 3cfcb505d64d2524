-- A strict query sees all that anybody was told for good before it was called (levels local and quorum; by the load
-- generator's clock).
SELECT run, query, position, 'position ' || CAST(told_before AS STRING) || ' had been told when it was called' AS because
FROM (
    SELECT run, query, position, is_call,
           max(CASE WHEN is_call = 0 THEN known END)
               OVER (PARTITION BY run ORDER BY instant ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS told_before
    FROM (
        SELECT run, '' AS query, local_index AS instant, position AS known, 0 AS is_call, NULL AS position FROM told
        UNION ALL
        SELECT run, query, called, NULL, 1, position FROM query WHERE service = 'strict'
    ) happened
) sofar
WHERE is_call = 1 AND position < told_before
