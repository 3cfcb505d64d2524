-- Runs that have fallen quiet with the network whole and everybody up who was not stopped for good; in each, who is a
-- server then, where the order of each begins, and how many there are.
WITH world AS (
    SELECT run, kind, row_number() OVER (PARTITION BY run ORDER BY local_index DESC) AS from_the_end
    FROM said
    WHERE kind IN ('fault', 'healed')
),
stopped AS (
    SELECT DISTINCT run, members AS process FROM said WHERE kind = 'gone'
    UNION
    SELECT run, server FROM given_up
),
up AS (
    SELECT l.life, l.run, l.process, l.is_over
    FROM life l
    ANTI JOIN stopped s ON s.run = l.run AND s.process = l.process
    WHERE l.is_last
),
troubled AS (
    SELECT run FROM world WHERE from_the_end = 1 AND kind = 'fault'
    UNION
    SELECT run FROM up WHERE is_over
),
begun AS (
    SELECT run, process, max(position) AS base
    FROM step
    WHERE kind IN ('restored', 'replaced')
    GROUP BY run, process
)
SELECT u.life, u.run, u.process, coalesce(b.base, 0) AS base,
       s.run IS NOT NULL AND s.until = 4000000000000000000 AS is_server,
       count(CASE WHEN s.until = 4000000000000000000 THEN 1 END) OVER (PARTITION BY u.run) AS servers
FROM up u
JOIN (SELECT DISTINCT run FROM said WHERE kind = 'quiet') q ON q.run = u.run
ANTI JOIN troubled t ON t.run = u.run
LEFT JOIN seat s ON s.run = u.run AND s.server = u.process
LEFT JOIN begun b ON b.run = u.run AND b.process = u.process
