-- In everybody's order a creator's bundles stand by their index, without gaps, from the first, or from the last that
-- the snapshot holds with which it began (notes I3).
WITH held AS (
    SELECT b.run, b.process, b.position AS base, m.creator, max(m.bundle_index) AS last_index
    FROM (SELECT DISTINCT run, process, position FROM base) b
    JOIN mark m ON m.run = b.run AND m.position <= b.position
    WHERE m.is_kept
    GROUP BY b.run, b.process, b.position, m.creator
)
SELECT n.run, n.process, n.position, n.bundle,
       'it follows number ' || CAST(coalesce(n.before, h.last_index, 0) AS STRING) || ' of ' || n.creator AS because
FROM (
    SELECT run, process, position, bundle, creator, bundle_index, base,
           lag(bundle_index) OVER (PARTITION BY run, process, base, creator ORDER BY position, incarnation, local_index)
               AS before
    FROM mark
    WHERE is_kept
) n
LEFT JOIN held h ON h.run = n.run AND h.process = n.process AND h.base = n.base AND h.creator = n.creator
WHERE n.bundle_index <> coalesce(n.before, h.last_index, 0) + 1
