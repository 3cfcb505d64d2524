-- How a process ended: in which life, up or not, how far its configurations counted, and whether its run is quiet.
WITH last_life AS (
    SELECT run, process, max(incarnation) AS incarnation FROM event GROUP BY run, process
),
dead AS (SELECT DISTINCT run, process, incarnation FROM event WHERE kind = 'crash'),
counted AS (
    SELECT run, process, max(CASE WHEN translate(split_part(conf, '.', 2), '0123456789', '') = '' THEN TRY_CAST(split_part(conf, '.', 2) AS BIGINT) END) AS counter
    FROM conf_event
    WHERE kind = 'regular'
    GROUP BY run, process
),
quiet AS (SELECT DISTINCT run FROM trace WHERE kind = 'quiet')
SELECT l.run, l.process, l.incarnation, d.process IS NULL AS is_up, c.counter, q.run IS NOT NULL AS is_quiet
FROM last_life l
LEFT JOIN counted c ON c.run = l.run AND c.process = l.process
LEFT JOIN dead d ON d.run = l.run AND d.process = l.process AND d.incarnation = l.incarnation
LEFT JOIN quiet q ON q.run = l.run
