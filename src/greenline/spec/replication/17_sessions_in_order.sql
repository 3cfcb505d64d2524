-- What one session asked of one server, each once, has its places in the order of asking (notes I21; levels local and quorum).
SELECT run, action, position, sub,
       'asked later than what is at ' || CAST(before AS STRING) || '.' || CAST(sub_before AS STRING) AS because
FROM (
    SELECT run, action, position, sub,
           lag(position) OVER asking AS before,
           lag(sub) OVER asking AS sub_before
    FROM operation
    WHERE returned IS NOT NULL AND calls = 1
    WINDOW asking AS (PARTITION BY run, split_part(action, '/', 1), asked ORDER BY called)
) asked_in_order
WHERE position < before OR (position = before AND sub <= sub_before)
