-- From where on what a process applied is not what others keep: a life of it is over, and no disk has what it saw then.
-- A query of it may have shown that: a crash of everybody takes what was green in memory only (notes, GAP 3).
WITH kept AS (SELECT DISTINCT run, position, sub, action, digest FROM applied WHERE is_kept)
SELECT a.run, a.process, min(a.position) AS position
FROM applied a
ANTI JOIN kept k
  ON k.run = a.run AND k.position = a.position AND k.sub = a.sub AND k.action = a.action AND k.digest = a.digest
WHERE NOT a.is_kept
GROUP BY a.run, a.process
