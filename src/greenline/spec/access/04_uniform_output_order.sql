-- Nobody decides what a client was told of without all that was decided before it: up to the last such place a replica
-- has decided as much as there is, from where its order begins (C5).
WITH own AS (
    SELECT DISTINCT run, process, position, sub, action FROM applied WHERE is_kept AND is_decided
),
begun AS (
    SELECT run, process, max(position) AS base
    FROM step
    WHERE kind IN ('restored', 'replaced')
    GROUP BY run, process
),
last_told AS (
    SELECT o.run, o.process, max(o.position) AS position
    FROM own o
    JOIN told t ON t.run = o.run AND t.action = o.action AND t.position = o.position AND t.sub = o.sub
    GROUP BY o.run, o.process
),
bounds AS (
    SELECT l.run, l.process, l.position, coalesce(b.base, 0) AS base
    FROM last_told l
    LEFT JOIN begun b ON b.run = l.run AND b.process = l.process
),
mine AS (
    SELECT b.run, b.process, count(*) AS places
    FROM bounds b
    JOIN own o ON o.run = b.run AND o.process = b.process AND o.position > b.base AND o.position < b.position
    GROUP BY b.run, b.process
),
everybodys AS (
    SELECT b.run, b.process, count(*) AS places
    FROM bounds b
    JOIN (SELECT DISTINCT run, position, sub, action FROM decision) d
      ON d.run = b.run AND d.position > b.base AND d.position < b.position
    GROUP BY b.run, b.process
)
SELECT e.run, e.process, b.position,
       'before it, this replica has decided ' || CAST(coalesce(m.places, 0) AS STRING) || ' of ' || CAST(e.places AS STRING)
       AS because
FROM everybodys e
JOIN bounds b ON b.run = e.run AND b.process = e.process
LEFT JOIN mine m ON m.run = e.run AND m.process = e.process
WHERE coalesce(m.places, 0) <> e.places
