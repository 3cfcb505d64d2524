-- Once the run is quiet, what was sent in a configuration that its sender is still in was delivered by all its members.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
dead AS (SELECT run, process, incarnation FROM trace WHERE kind IN ('crash', 'halt')),
confs AS (
    SELECT c.run, c.process, c.incarnation, c.conf,
           row_number() OVER (PARTITION BY c.run, c.process, c.incarnation ORDER BY c.local_index DESC) AS from_the_end
    FROM trace c
    JOIN quiet q ON q.run = c.run
    ANTI JOIN dead d ON d.run = c.run AND d.process = c.process AND d.incarnation = c.incarnation
    WHERE c.kind IN ('regular', 'transitional')
),
ends AS (SELECT run, process, incarnation, conf FROM confs WHERE from_the_end = 1),
sent AS (
    SELECT s.run, s.message, s.conf
    FROM trace s
    JOIN ends e ON e.run = s.run AND e.process = s.process AND e.incarnation = s.incarnation AND e.conf = s.conf
    WHERE s.kind = 'send'
)
SELECT s.run, e.process, s.message, s.conf, 'it was sent here, and the run fell quiet without its delivery' AS because
FROM sent s
JOIN ends e ON e.run = s.run AND e.conf = s.conf
ANTI JOIN (SELECT run, process, incarnation, message FROM trace WHERE kind = 'deliver') d
  ON d.run = s.run AND d.process = e.process AND d.incarnation = e.incarnation AND d.message = s.message
