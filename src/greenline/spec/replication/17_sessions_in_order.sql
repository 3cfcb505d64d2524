-- The places that a session was told rise with its numbers; what is relaxed has none (notes I21; levels local and
-- quorum).
SELECT run, action, position, sub,
       'its number is greater than that of what is at ' || CAST(before AS STRING) || '.' || CAST(sub_before AS STRING)
       AS because
FROM (
    SELECT run, action, position, sub,
           lag(position) OVER asking AS before,
           lag(sub) OVER asking AS sub_before
    FROM operation
    WHERE returned IS NOT NULL AND instr(action, '/') > 0 AND NOT is_query
    WINDOW asking AS (PARTITION BY run, split_part(action, '/', 1)
                      ORDER BY coalesce(CASE WHEN translate(split_part(action, '/', 2), '0123456789', '') = ''
                                             THEN TRY_CAST(split_part(action, '/', 2) AS BIGINT) END, 0),
                               called, position, sub, action)
) numbered
WHERE position < before OR (position = before AND sub <= sub_before)
