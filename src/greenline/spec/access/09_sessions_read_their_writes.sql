-- A session query sees at least the position that it asks for, and all that its session was told before it was called:
-- its own actions (levels local and quorum), and what its strict and session queries saw.
WITH known AS (
    SELECT run, split_part(replace(action, '~', '/'), '/', 1) AS session, local_index AS instant, position FROM told
    UNION ALL
    SELECT run, session, returned, position FROM query WHERE service IN ('strict', 'session') AND is_sound
),
sofar AS (
    SELECT run, query, position, after, is_call,
           max(CASE WHEN is_call = 0 THEN known END)
               OVER (PARTITION BY run, session ORDER BY instant ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS told_before
    FROM (
        SELECT run, session, '' AS query, instant, position AS known, 0 AS is_call, NULL AS position, NULL AS after FROM known
        UNION ALL
        SELECT run, session, query, called, NULL, 1, position, after FROM query WHERE service = 'session'
    ) happened
)
SELECT run, query, position,
       CASE WHEN position < after THEN 'it asked for position ' || CAST(after AS STRING)
            ELSE 'its session had been told of position ' || CAST(told_before AS STRING) END AS because
FROM sofar
WHERE is_call = 1 AND (position < after OR position < told_before)
