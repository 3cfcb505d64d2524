-- Servers whom an operator gave up for dead: they were servers when a force was told, and are not among its survivors.
-- What only they had may be lost, and is not asked for; `epoch` is that of the
-- first such force, `agreed` is how far their order is that of others.
WITH dead AS (
    SELECT f.run, s.server, min(f.position) AS epoch
    FROM reach f
    JOIN seat s ON s.run = f.run AND s.since <= f.green
    WHERE f.kind = 'force' AND instr(' ' || f.members || ' ', ' ' || s.server || ' ') = 0
    GROUP BY f.run, s.server
),
order_of AS (
    SELECT s.run, s.process, s.position, s.digest, d.server IS NOT NULL AS is_dead
    FROM step s
    JOIN (SELECT DISTINCT run FROM dead) r ON r.run = s.run
    LEFT JOIN dead d ON d.run = s.run AND d.server = s.process
    WHERE s.kind = 'restored' OR (s.kind = 'mark' AND s.colour = 'green')
),
common AS (
    SELECT m.run, m.process, max(m.position) AS position
    FROM order_of m
    JOIN order_of o ON o.run = m.run AND o.position = m.position AND o.digest = m.digest AND NOT o.is_dead
    WHERE m.is_dead
    GROUP BY m.run, m.process
)
SELECT d.run, d.server, d.epoch, coalesce(c.position, 0) AS agreed
FROM dead d
LEFT JOIN common c ON c.run = d.run AND c.process = d.server
