-- There is one primary component of each index: one attempt, one set of members, one order. Asked of installations that are
-- kept: one that nobody's disk knows may be attempted anew (notes I4, I5).
SELECT run, prim, min(members) AS one, max(members) AS other,
       CASE WHEN count(DISTINCT attempt) > 1 THEN 'it was installed by two attempts'
            WHEN count(DISTINCT members) > 1 THEN 'it was installed with different members'
            ELSE 'it was installed over different orders' END AS because
FROM installed
WHERE is_kept
GROUP BY run, prim
HAVING count(DISTINCT attempt) > 1 OR count(DISTINCT members) > 1 OR count(DISTINCT digest) > 1
