-- Once the run is quiet, everybody who is up has read every notice that was sent or that anybody has read.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
last_life AS (SELECT run, process, max(incarnation) AS life FROM trace WHERE kind = 'start' GROUP BY run, process),
up AS (
    SELECT l.run, l.process, l.life
    FROM last_life l
    JOIN quiet q ON q.run = l.run
    ANTI JOIN (SELECT run, process, incarnation FROM trace WHERE kind IN ('crash', 'halt')) dead
      ON dead.run = l.run AND dead.process = l.process AND dead.incarnation = l.life
),
notices AS (SELECT DISTINCT run, message FROM trace WHERE kind IN ('send', 'deliver'))
SELECT n.run, u.process, n.message, 'it was never read, though the run fell quiet' AS because
FROM notices n
JOIN up u ON u.run = n.run
ANTI JOIN (SELECT run, process, incarnation, message FROM trace WHERE kind = 'deliver') d
  ON d.run = n.run AND d.message = n.message AND d.process = u.process AND d.incarnation = u.life
