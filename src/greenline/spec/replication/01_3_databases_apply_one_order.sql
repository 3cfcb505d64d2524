-- At equal places every database has applied the same action, with the same outcome. Asked of what is kept.
SELECT run, position, sub, min(action) AS one, max(action) AS other,
       CASE WHEN count(DISTINCT action) > 1 THEN 'two actions were applied here'
            ELSE 'it had two outcomes' END AS because
FROM applied
WHERE is_kept
GROUP BY run, position, sub
HAVING count(DISTINCT action) > 1 OR count(DISTINCT digest) > 1
