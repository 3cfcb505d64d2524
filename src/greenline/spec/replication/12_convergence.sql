-- Once a run has settled, all databases of servers are equal and at one position, no server has reds, everybody is in a
-- primary component of all servers, and who is up is a server: who came has joined, and who has left was stopped (notes
-- I13).
WITH final AS (
    SELECT f.run, f.members AS process, f.position, f.digest, f.sub AS reds
    FROM said f
    JOIN settled s ON s.run = f.run AND s.process = f.members
    WHERE f.kind = 'final' AND s.is_server
),
differing AS (
    SELECT run FROM final GROUP BY run HAVING count(DISTINCT position) > 1 OR count(DISTINCT digest) > 1
),
reported AS (SELECT DISTINCT run FROM said WHERE kind = 'final'),
last_steps AS (
    SELECT s.life,
           max(CASE WHEN s.kind = 'phase' THEN s.local_index END) AS phase_at,
           max(CASE WHEN s.kind = 'install' THEN s.local_index END) AS install_at
    FROM step s
    JOIN settled l ON l.life = s.life
    WHERE s.kind IN ('phase', 'install')
    GROUP BY s.life
)
SELECT f.run, f.process, f.position, f.digest, 'their databases differ' AS because
FROM final f
JOIN differing d ON d.run = f.run
UNION ALL
SELECT run, process, position, digest, 'it still has reds: ' || CAST(reds AS STRING) FROM final WHERE reds <> 0
UNION ALL
SELECT l.run, l.process, NULL, NULL, 'nobody asked it how it ended'
FROM settled l
JOIN reported r ON r.run = l.run
ANTI JOIN final f ON f.run = l.run AND f.process = l.process
WHERE l.is_server
UNION ALL
SELECT run, process, NULL, NULL, 'it is up, and no server' FROM settled WHERE NOT is_server
UNION ALL
SELECT l.run, l.process, NULL, NULL, 'it ends in ' || coalesce(p.detail, 'no phase')
FROM settled l
LEFT JOIN last_steps t ON t.life = l.life
LEFT JOIN step p ON p.life = l.life AND p.local_index = t.phase_at
WHERE l.is_server AND coalesce(p.detail, '') <> 'RegPrim'
UNION ALL
SELECT l.run, l.process, NULL, NULL, 'its last primary component is ' || coalesce(i.members, 'none')
FROM settled l
LEFT JOIN last_steps t ON t.life = l.life
LEFT JOIN step i ON i.life = l.life AND i.local_index = t.install_at
WHERE l.is_server AND coalesce(length(i.members) - length(replace(i.members, ' ', '')) + 1, 0) <> l.servers
