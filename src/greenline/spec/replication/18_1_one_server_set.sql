-- At equal positions everybody has made the same change of the server set, with the same result (notes, GAP 24; asked
-- of what is kept).
SELECT run, position, min(detail) AS one, max(detail) AS other, 'its results differ' AS because
FROM roster
WHERE is_kept
GROUP BY run, position, nth
HAVING count(DISTINCT detail) > 1 OR count(DISTINCT members) > 1 OR count(DISTINCT digest) > 1
