-- Once the run is quiet, everybody is up who was started and not stopped for good.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
gone AS (SELECT run, members AS process FROM trace WHERE process = '*' AND kind = 'gone'),
last_life AS (SELECT run, process, max(incarnation) AS life FROM trace WHERE kind = 'start' GROUP BY run, process)
SELECT l.run, l.process, l.life, 'its last life is over: ' || d.kind || coalesce(' ' || d.detail, '') AS because
FROM last_life l
JOIN quiet q ON q.run = l.run
JOIN (SELECT run, process, incarnation, kind, detail FROM trace WHERE kind IN ('crash', 'halt')) d
  ON d.run = l.run AND d.process = l.process AND d.incarnation = l.life
ANTI JOIN gone g ON g.run = l.run AND g.process = l.process
