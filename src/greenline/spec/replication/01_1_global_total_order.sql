-- At equal positions everybody has the same bundle and the same order before it. Asked of green marks that are kept: what
-- a crash of everybody took from memory may be ordered otherwise (notes I1, GAP 3).
SELECT run, position, min(bundle) AS one, max(bundle) AS other,
       CASE WHEN count(DISTINCT bundle) > 1 THEN 'two bundles have this position'
            ELSE 'the orders that lead here differ' END AS because
FROM mark
WHERE is_kept
GROUP BY run, position
HAVING count(DISTINCT bundle) > 1 OR count(DISTINCT digest) > 1
