-- Once a run has settled, every database has applied what any client was answered: where it was told, if it was told for good
-- (green at level local or quorum), and somewhere in any case, also if only accepted (red) (notes I11).
WITH everywhere AS (
    SELECT l.run, l.process
    FROM life l
    JOIN settled s ON s.run = l.run
    WHERE l.is_last
),
answered AS (
    SELECT DISTINCT run, message AS action FROM said WHERE kind = 'return' AND message <> ''
),
kept AS (SELECT DISTINCT run, process, action, position, sub FROM applied WHERE is_kept)
SELECT e.run, e.process, a.action, 'it was answered, and the run settled without its effect here' AS because
FROM everywhere e
JOIN answered a ON a.run = e.run
ANTI JOIN kept k ON k.run = e.run AND k.process = e.process AND k.action = a.action
UNION ALL
SELECT e.run, e.process, o.action,
       'it was told to be at ' || CAST(o.position AS STRING) || '.' || CAST(o.sub AS STRING) || ', and is not there here'
FROM everywhere e
JOIN operation o ON o.run = e.run AND o.returned IS NOT NULL
ANTI JOIN kept k
  ON k.run = e.run AND k.process = e.process AND k.action = o.action AND k.position = o.position AND k.sub = o.sub
