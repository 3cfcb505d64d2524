-- In a life a database applies action after action: the next of the same bundle, or the first of the bundle at the next
-- position, from where it was opened.
SELECT run, process, incarnation, local_index, position, sub, message,
       'it follows ' || CAST(before AS STRING)
       || CASE WHEN kind_before = 'apply' THEN '.' || CAST(sub_before AS STRING) ELSE '' END AS because
FROM (
    SELECT run, process, incarnation, local_index, kind, message, position, sub,
           lag(kind) OVER life AS kind_before,
           lag(position) OVER life AS before,
           lag(sub) OVER life AS sub_before
    FROM step
    WHERE kind IN ('opened', 'apply')
    WINDOW life AS (PARTITION BY life ORDER BY local_index)
) numbered
WHERE kind = 'apply' AND kind_before IS NOT NULL
  AND NOT (position = before + 1 AND sub = 0)
  AND NOT (position = before AND kind_before = 'apply' AND sub = sub_before + 1)
