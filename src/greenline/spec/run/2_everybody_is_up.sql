-- Once the run is quiet, everybody is up.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
last_life AS (SELECT run, process, max(incarnation) AS life FROM trace WHERE kind = 'start' GROUP BY run, process)
SELECT l.run, l.process, l.life, 'its last life is over: ' || d.kind || coalesce(' ' || d.detail, '') AS because
FROM last_life l
JOIN quiet q ON q.run = l.run
JOIN (SELECT run, process, incarnation, kind, detail FROM trace WHERE kind IN ('crash', 'halt')) d
  ON d.run = l.run AND d.process = l.process AND d.incarnation = l.life
