-- Once a component was formed without a server that has left, no later one has it, and it agrees to none; once it was
-- told so, it makes nothing more (notes, GAP 25).
WITH without AS (
    SELECT s.run, s.server, min(i.prim) AS prim
    FROM seat s
    JOIN reach r ON r.run = s.run AND r.kind = 'install' AND r.green >= s.until
    JOIN installed i ON i.life = r.life AND i.local_index = r.local_index
    ANTI JOIN given_up g ON g.run = s.run AND g.server = s.server
    WHERE i.is_kept AND instr(' ' || i.members || ' ', ' ' || s.server || ' ') = 0
    GROUP BY s.run, s.server
),
told AS (
    SELECT run, process, min(incarnation) AS incarnation FROM step WHERE kind = 'left' GROUP BY run, process
),
told_at AS (
    SELECT t.run, t.process, t.incarnation, min(s.local_index) AS local_index
    FROM told t
    JOIN step s ON s.run = t.run AND s.process = t.process AND s.incarnation = t.incarnation AND s.kind = 'left'
    GROUP BY t.run, t.process, t.incarnation
)
SELECT i.run, i.process, i.incarnation, i.local_index, w.server,
       'component ' || CAST(w.prim AS STRING) || ' was formed without it' AS because
FROM installed i
JOIN without w ON w.run = i.run AND w.prim < i.prim AND instr(' ' || i.members || ' ', ' ' || w.server || ' ') > 0
UNION ALL
SELECT c.run, c.process, c.incarnation, c.local_index, c.process,
       'it agrees to leave component ' || CAST(c.position AS STRING) || ', which was formed without it'
FROM step c
JOIN without w ON w.run = c.run AND w.server = c.process AND w.prim <= c.position
WHERE c.kind = 'cpc'
UNION ALL
SELECT s.run, s.process, s.incarnation, s.local_index, s.process, 'it was told that it has left, and says ' || s.kind
FROM step s
JOIN told_at t
  ON t.run = s.run AND t.process = s.process
 AND (s.incarnation > t.incarnation OR (s.incarnation = t.incarnation AND s.local_index > t.local_index))
WHERE s.kind IN ('create', 'cpc', 'install')
