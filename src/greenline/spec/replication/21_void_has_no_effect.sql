-- What is ordered after its creator has left, and made void what it leaves behind, has no effect: no database applies
-- anything there (notes, GAP 26).
WITH void AS (
    SELECT DISTINCT m.run, m.position, m.bundle
    FROM mark m
    JOIN seat s ON s.run = m.run AND s.server = m.creator AND s.is_void AND s.until < m.position
    WHERE m.is_kept
)
SELECT DISTINCT a.run, a.process, a.position, a.action, v.bundle || ' is void' AS because
FROM applied a
JOIN void v ON v.run = a.run AND v.position = a.position
WHERE a.is_kept
