-- In a life a database applies action after action, from where it was opened or replaced by a snapshot: the next of the
-- same bundle, or the first of a later one. Bundles without actions leave no row; where a row is kept, nothing that any
-- database keeps may lie between.
WITH did AS (
    SELECT life, run, process, incarnation, local_index, 'apply' AS kind, action, position, sub, is_kept FROM applied
    UNION ALL
    SELECT life, run, process, incarnation, local_index, kind, '', position, 4000000000000000000, FALSE
    FROM step
    WHERE kind IN ('opened', 'replaced')
),
place AS (
    SELECT run, position, sub, max(CASE WHEN is_kept THEN 1 ELSE 0 END) AS is_kept FROM did GROUP BY run, position, sub
),
counted AS (
    SELECT run, position, sub, sum(is_kept) OVER (PARTITION BY run ORDER BY position, sub) AS upto FROM place
),
followed AS (
    SELECT d.*, c.upto,
           lag(d.kind) OVER life AS kind_before,
           lag(d.position) OVER life AS before,
           lag(d.sub) OVER life AS sub_before,
           lag(c.upto) OVER life AS upto_before
    FROM did d
    JOIN counted c ON c.run = d.run AND c.position = d.position AND c.sub = d.sub
    WINDOW life AS (PARTITION BY d.life ORDER BY d.local_index, d.kind, d.position, d.sub, d.action)
)
SELECT run, process, incarnation, local_index, position, sub, action AS message,
       'it follows ' || CAST(before AS STRING)
       || CASE WHEN kind_before = 'apply' THEN '.' || CAST(sub_before AS STRING) ELSE '' END AS because
FROM followed
WHERE kind = 'apply' AND kind_before IS NOT NULL
  AND ((is_kept AND upto - 1 > upto_before)
       OR NOT ((position > before AND sub = 0) OR (position = before AND kind_before = 'apply' AND sub = sub_before + 1)))
