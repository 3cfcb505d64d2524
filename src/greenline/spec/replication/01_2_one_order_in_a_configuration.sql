-- What the regular configuration of a primary component orders has one place at all its members, kept or not (OR-1.1).
SELECT run, conf, position, min(bundle) AS one, max(bundle) AS other,
       'its members order different bundles here, or after different ones' AS because
FROM mark
WHERE colour = 'green' AND detail = 'OR-1.1 RegPrim' AND conf <> ''
GROUP BY run, conf, position
HAVING count(DISTINCT bundle) > 1 OR count(DISTINCT digest) > 1
