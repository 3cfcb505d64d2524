-- Whoever asks for the same again is told the same: its place and its outcome (levels local and quorum; C6).
SELECT run, action, min(digest) AS one, max(digest) AS other,
       CASE WHEN count(DISTINCT digest) > 1 THEN 'two outcomes were told' ELSE 'two places were told' END AS because
FROM told
GROUP BY run, action
HAVING count(DISTINCT digest) > 1 OR count(DISTINCT position) > 1 OR count(DISTINCT sub) > 1
