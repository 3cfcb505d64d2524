-- What a process has read in one life it reads again in its last one, once the run is quiet.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
last_life AS (SELECT run, process, max(incarnation) AS life FROM trace WHERE kind = 'start' GROUP BY run, process),
read_in AS (
    SELECT run, process, message, max(incarnation) AS life
    FROM trace
    WHERE kind = 'deliver'
    GROUP BY run, process, message
)
SELECT r.run, r.process, r.message, r.life AS read_in,
       'it was read, and is forgotten in life ' || CAST(l.life AS STRING) AS because
FROM read_in r
JOIN last_life l ON l.run = r.run AND l.process = r.process
JOIN quiet q ON q.run = r.run
WHERE r.life < l.life
