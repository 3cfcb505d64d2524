-- Once a run has settled, every server has applied what any client was answered, itself or in the snapshot with which
-- it began: where it was told, if it was told for good (green at level local or quorum), and somewhere in any case,
-- also if only accepted (red) (notes I11). What was answered by a server that was given up, or that left and made void
-- what it left behind, may be lost; and what was only accepted by one that died for good.
WITH excused AS (
    SELECT run, server FROM given_up
    UNION
    SELECT run, server FROM seat WHERE is_void
),
answered AS (
    SELECT DISTINCT s.run, s.message AS action
    FROM said s
    ANTI JOIN excused x ON x.run = s.run AND x.server = s.members
    ANTI JOIN buried b ON b.run = s.run AND b.server = s.members AND s.colour = 'red'
    WHERE s.kind = 'return' AND s.message <> '' AND NOT s.is_query
),
kept AS (SELECT DISTINCT run, process, action, position, sub FROM applied WHERE is_kept),
first_place AS (SELECT run, action, min(position) AS position FROM kept GROUP BY run, action)
SELECT e.run, e.process, a.action, 'it was answered, and the run settled without its effect here' AS because
FROM settled e
JOIN answered a ON a.run = e.run
LEFT JOIN first_place f ON f.run = a.run AND f.action = a.action
ANTI JOIN kept k ON k.run = e.run AND k.process = e.process AND k.action = a.action
WHERE e.is_server AND NOT coalesce(f.position <= e.base, FALSE)
UNION ALL
SELECT e.run, e.process, o.action,
       'it was told to be at ' || CAST(o.position AS STRING) || '.' || CAST(o.sub AS STRING) || ', and is not there here'
FROM settled e
JOIN operation o ON o.run = e.run AND o.returned IS NOT NULL AND NOT o.is_query
ANTI JOIN kept k
  ON k.run = e.run AND k.process = e.process AND k.action = o.action AND k.position = o.position AND k.sub = o.sub
WHERE e.is_server AND o.position > e.base
