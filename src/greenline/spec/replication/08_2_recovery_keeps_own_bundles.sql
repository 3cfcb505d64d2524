-- A life knows of every bundle that the process made in an earlier one and that anybody has marked: it was sent, so it was
-- durable. One that is made once more is rule 15's.
WITH marked AS (SELECT DISTINCT run, bundle, creator, bundle_index FROM mark),
made AS (
    SELECT c.run, c.process, m.bundle, m.bundle_index, min(c.incarnation) AS first_life, max(c.incarnation) AS last_life
    FROM step c
    JOIN marked m ON m.run = c.run AND m.bundle = c.message AND m.creator = c.process
    WHERE c.kind = 'create'
    GROUP BY c.run, c.process, m.bundle, m.bundle_index
)
SELECT l.run, l.process, l.incarnation, m.bundle,
       'it was sent in life ' || CAST(m.first_life AS STRING) || ', but this one knows of '
       || CAST(l.last_index AS STRING) || ' of its own' AS because
FROM life l
JOIN made m ON m.run = l.run AND m.process = l.process AND m.last_life < l.incarnation
WHERE m.bundle_index > l.last_index
