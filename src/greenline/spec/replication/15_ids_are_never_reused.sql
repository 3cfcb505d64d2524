-- A process numbers its bundles one by one from the last that its log recovered; a number is given again only if the bundle
-- was lost before it was sent: nobody else marked it in a configuration that its first life was in (notes I18).
WITH made AS (
    SELECT life, run, process, incarnation, local_index, message AS bundle, kind,
           CASE WHEN kind = 'recover' THEN sub ELSE coalesce(CASE WHEN translate(split_part(message, '#', 2), '0123456789', '') = ''
                                                                  THEN TRY_CAST(split_part(message, '#', 2) AS BIGINT) END, 0) END AS number
    FROM step
    WHERE kind IN ('recover', 'create')
),
numbered AS (
    SELECT *, lag(number) OVER (PARTITION BY life ORDER BY local_index, kind, number, bundle) AS before FROM made
),
again AS (
    SELECT a.run, a.process, a.bundle, a.life, a.incarnation AS first_life, b.incarnation, b.local_index
    FROM made a
    JOIN made b ON b.run = a.run AND b.process = a.process AND b.bundle = a.bundle AND b.incarnation > a.incarnation
    WHERE a.kind = 'create' AND b.kind = 'create'
)
SELECT run, process, incarnation, local_index, bundle, 'it follows number ' || CAST(before AS STRING) AS because
FROM numbered
WHERE kind = 'create' AND number <> before + 1
UNION ALL
SELECT DISTINCT a.run, a.process, a.incarnation, a.local_index, a.bundle,
       'it was made and sent in life ' || CAST(a.first_life AS STRING)
FROM again a
JOIN mark m ON m.run = a.run AND m.bundle = a.bundle AND m.process <> a.process
JOIN sojourn s ON s.life = a.life AND s.conf = m.conf
