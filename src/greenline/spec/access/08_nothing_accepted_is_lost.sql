-- Once a run has settled, what was accepted is decided, unless it was ordered and refused for a reason of its session's
-- (early, crowded, expired), or its server was given up, died for good, or made it void when it left.
WITH excused AS (
    SELECT run, server FROM given_up
    UNION
    SELECT run, server FROM seat WHERE is_void
),
accepted AS (
    SELECT DISTINCT s.run, s.message AS action
    FROM said s
    JOIN (SELECT DISTINCT run FROM settled) e ON e.run = s.run
    ANTI JOIN excused x ON x.run = s.run AND x.server = s.members
    ANTI JOIN buried b ON b.run = s.run AND b.server = s.members
    WHERE s.kind = 'return' AND s.colour = 'red' AND s.message <> ''
),
answered AS (SELECT DISTINCT run, action FROM applied WHERE is_kept AND verdict <> 'again')
SELECT a.run, a.action, 'it was accepted, and the run settled without deciding it' AS because
FROM accepted a
ANTI JOIN answered d ON d.run = a.run AND d.action = a.action
