-- Runs that have fallen quiet with the network whole and everybody up, and how many servers they have.
WITH world AS (
    SELECT run, kind, row_number() OVER (PARTITION BY run ORDER BY local_index DESC) AS from_the_end
    FROM said
    WHERE kind IN ('fault', 'healed')
),
troubled AS (
    SELECT run FROM world WHERE from_the_end = 1 AND kind = 'fault'
    UNION
    SELECT run FROM life WHERE is_last AND is_over
)
SELECT l.run, count(DISTINCT l.process) AS servers
FROM life l
JOIN (SELECT DISTINCT run FROM said WHERE kind = 'quiet') q ON q.run = l.run
ANTI JOIN troubled t ON t.run = l.run
GROUP BY l.run
