-- What is green by OR-1.1 in a configuration is not unknown to another member of the primary component that was in it too
-- and has moved on: it has at least delivered it in transition, and marked it by then (notes I19).
WITH told AS (
    SELECT run, process, incarnation, conf,
           lead(conf) OVER (PARTITION BY run, process, incarnation ORDER BY local_index) AS next_conf
    FROM trace
    WHERE process <> '*' AND kind = 'regular' AND conf IS NOT NULL
),
moved AS (
    SELECT t.run, t.process, t.incarnation, t.conf, s.since AS left_at
    FROM told t
    JOIN life l ON l.run = t.run AND l.process = t.process AND l.incarnation = t.incarnation
    JOIN sojourn s ON s.life = l.life AND s.conf = t.next_conf
),
placed AS (
    SELECT life, run, conf, message, kind,
           max(CASE WHEN kind = 'install' THEN local_index END) OVER (PARTITION BY life ORDER BY local_index) AS installed_at
    FROM step
    WHERE kind = 'install' OR (kind = 'mark' AND colour = 'green' AND detail = 'OR-1.1 RegPrim')
),
ordered AS (
    SELECT DISTINCT p.run, p.conf, p.message AS bundle, i.members
    FROM placed p
    JOIN installed i ON i.life = p.life AND i.local_index = p.installed_at
    WHERE p.kind = 'mark'
),
known AS (
    SELECT run, process, bundle, incarnation, min(local_index) AS local_index
    FROM mark
    GROUP BY run, process, bundle, incarnation
)
SELECT o.run, m.process, m.incarnation, o.conf, o.bundle, 'it left the configuration without it' AS because
FROM ordered o
JOIN moved m
  ON m.run = o.run AND m.conf = o.conf AND instr(' ' || o.members || ' ', ' ' || m.process || ' ') > 0
LEFT JOIN known k ON k.run = o.run AND k.process = m.process AND k.bundle = o.bundle
GROUP BY o.run, m.process, m.incarnation, m.left_at, o.conf, o.bundle
HAVING count(CASE WHEN k.incarnation < m.incarnation
                    OR (k.incarnation = m.incarnation AND k.local_index < m.left_at) THEN 1 END) = 0
