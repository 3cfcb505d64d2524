-- Who crashed, was removed while it was down, and never came back: what only it had accepted is lost with its disk. Who
-- was let go (`left`) is not: others have taken over what it had.
SELECT g.run, g.members AS server
FROM said g
JOIN life l ON l.run = g.run AND l.process = g.members AND l.is_last
JOIN trace t ON t.run = l.run AND t.process = l.process AND t.incarnation = l.incarnation AND t.kind = 'crash'
ANTI JOIN step s ON s.run = g.run AND s.process = g.members AND s.kind = 'left'
WHERE g.kind = 'gone'
