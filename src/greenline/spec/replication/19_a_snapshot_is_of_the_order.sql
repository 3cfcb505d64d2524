-- What a process begins with instead of the order's beginning is what the others have there: as far as somebody's
-- green, at least up to its own join, and with the same digest (notes, GAP 29).
WITH ordered AS (
    SELECT run, position, min(digest) AS digest FROM mark WHERE is_kept GROUP BY run, position
),
furthest AS (SELECT run, max(position) AS position FROM mark WHERE colour = 'green' GROUP BY run)
SELECT b.run, b.process, b.incarnation, b.local_index, b.position,
       CASE WHEN o.digest <> b.digest THEN 'others have another order there'
            WHEN b.position > coalesce(f.position, 0) THEN 'nobody has ordered so much'
            WHEN s.server IS NULL THEN 'it never joined'
            ELSE 'it joined at ' || CAST(s.since AS STRING) END AS because
FROM base b
LEFT JOIN ordered o ON o.run = b.run AND o.position = b.position
LEFT JOIN furthest f ON f.run = b.run
LEFT JOIN seat s ON s.run = b.run AND s.server = b.process
WHERE o.digest <> b.digest OR b.position > coalesce(f.position, 0) OR s.server IS NULL OR b.position < s.since
