-- The place that a client was told (levels local and quorum) stays that action's: no database that keeps what it
-- applied has another there, and no other client was told the same (notes I11).
SELECT run, position, sub, min(action) AS one, max(action) AS other,
       'a client was told that this is the place of one of them' AS because
FROM (
    SELECT run, position, sub, action, 0 AS told FROM applied WHERE is_kept
    UNION ALL
    SELECT run, position, sub, action, 1 AS told FROM operation WHERE returned IS NOT NULL AND NOT is_query
) placed
WHERE position > 0
GROUP BY run, position, sub
HAVING max(told) = 1 AND count(DISTINCT action) > 1
