-- A name that has left is never a server again, and never joins (notes, GAP 27).
SELECT r.run, r.process, r.incarnation, r.local_index, r.position, s.server,
       'it left at ' || CAST(s.until AS STRING) AS because
FROM roster r
JOIN seat s ON s.run = r.run AND s.until < r.position
WHERE r.is_kept
  AND (instr(' ' || r.members || ' ', ' ' || s.server || ' ') > 0 OR (r.verb = 'join' AND r.is_done AND r.server = s.server))
