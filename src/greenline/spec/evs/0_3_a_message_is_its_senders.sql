-- A message is generated once and sent by the process, and in the life, that its name tells, generated before sent.
WITH said AS (
    SELECT run, process, incarnation, n, kind, message,
           split_part(message, ':', 1) AS sender,
           split_part(message, ':', 2) AS life
    FROM event
    WHERE kind IN ('generate', 'send')
),
generated AS (
    SELECT run, message, count(*) AS times, min(n) AS n FROM said WHERE kind = 'generate' GROUP BY run, message
)
SELECT s.run, s.process, s.message, 'it was ' || CASE WHEN s.kind = 'send' THEN 'sent' ELSE 'generated' END
       || ' by another process or life than its name tells' AS because
FROM said s
WHERE s.process <> s.sender OR CAST(s.incarnation AS STRING) <> s.life
UNION ALL
SELECT g.run, split_part(g.message, ':', 1) AS process, g.message, 'it was generated more than once' AS because
FROM generated g
WHERE g.times > 1
UNION ALL
SELECT s.run, s.process, s.message, 'it was sent before it was generated' AS because
FROM said s
LEFT JOIN generated g ON g.run = s.run AND g.message = s.message
WHERE s.kind = 'send' AND s.process = s.sender AND (g.n IS NULL OR g.n > s.n)
