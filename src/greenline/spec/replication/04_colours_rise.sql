-- In a life a bundle's colour only rises, from red over yellow to green, each at most once; and what is green on disk,
-- or was in the snapshot with which a process began, is marked no more (notes I8).
WITH coloured AS (
    SELECT life, bundle, min(run) AS run, min(process) AS process, min(incarnation) AS incarnation,
           count(CASE WHEN colour = 'red' THEN 1 END) AS reds,
           count(CASE WHEN colour = 'yellow' THEN 1 END) AS yellows,
           count(CASE WHEN colour NOT IN ('red', 'yellow') THEN 1 END) AS greens,
           max(CASE WHEN colour = 'red' THEN local_index END) AS red_at,
           max(CASE WHEN colour = 'yellow' THEN local_index END) AS yellow_at,
           max(CASE WHEN colour NOT IN ('red', 'yellow') THEN local_index END) AS green_at,
           max(CASE WHEN is_kept THEN 1 ELSE 0 END) AS is_kept
    FROM mark
    GROUP BY life, bundle
),
kept AS (
    SELECT run, process, bundle, min(life) AS life
    FROM coloured
    WHERE is_kept = 1
    GROUP BY run, process, bundle
),
placed AS (SELECT run, bundle, min(position) AS position FROM mark WHERE is_kept GROUP BY run, bundle)
SELECT run, process, incarnation, bundle,
       CASE WHEN reds > 1 OR yellows > 1 OR greens > 1 THEN 'it got one colour twice'
            ELSE 'its colour went back' END AS because
FROM coloured
WHERE reds > 1 OR yellows > 1 OR greens > 1
   OR red_at > yellow_at OR red_at > green_at OR yellow_at > green_at
UNION ALL
SELECT c.run, c.process, c.incarnation, c.bundle, 'it was green on disk before this life'
FROM coloured c
JOIN kept k ON k.run = c.run AND k.process = c.process AND k.bundle = c.bundle AND k.life < c.life
UNION ALL
SELECT m.run, m.process, m.incarnation, m.bundle, 'it was in the snapshot that ends at ' || CAST(m.base AS STRING)
FROM mark m
JOIN placed p ON p.run = m.run AND p.bundle = m.bundle AND p.position <= m.base
WHERE m.base > 0
