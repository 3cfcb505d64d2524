-- A force is one decision: who has its epoch has its survivors, and is one of them; a process's epochs rise; and no
-- later component at a survivor has whom it gave up (notes, GAP 28).
WITH told AS (
    SELECT run, process, incarnation, local_index, position AS epoch, members,
           lag(position) OVER (PARTITION BY run, process ORDER BY incarnation, local_index) AS before
    FROM step
    WHERE kind = 'force'
)
SELECT run, '' AS process, 0 AS incarnation, epoch,
       'two forces have this epoch: ' || min(members) || ', and ' || max(members) AS because
FROM told
GROUP BY run, epoch
HAVING count(DISTINCT members) > 1
UNION ALL
SELECT run, process, incarnation, epoch,
       CASE WHEN instr(' ' || members || ' ', ' ' || process || ' ') = 0 THEN 'it is not among the survivors'
            ELSE 'it follows epoch ' || CAST(before AS STRING) END
FROM told
WHERE instr(' ' || members || ' ', ' ' || process || ' ') = 0 OR epoch < before
UNION ALL
SELECT DISTINCT i.run, i.process, i.incarnation, i.prim, g.server || ' was given up'
FROM installed i
JOIN given_up g ON g.run = i.run AND instr(' ' || i.members || ' ', ' ' || g.server || ' ') > 0
JOIN told t
  ON t.run = i.run AND t.process = i.process AND t.epoch >= g.epoch
 AND (i.incarnation > t.incarnation OR (i.incarnation = t.incarnation AND i.local_index > t.local_index))
