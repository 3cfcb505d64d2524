-- Once the run is quiet, what was generated in a life that is still going on has been sent.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet')
SELECT g.run, g.process, g.message, 'it was taken by the port and never sent' AS because
FROM trace g
JOIN quiet q ON q.run = g.run
ANTI JOIN (SELECT run, process, incarnation FROM trace WHERE kind IN ('crash', 'halt')) dead
  ON dead.run = g.run AND dead.process = g.process AND dead.incarnation = g.incarnation
ANTI JOIN (SELECT run, message FROM trace WHERE kind = 'send') s ON s.run = g.run AND s.message = g.message
WHERE g.kind = 'generate'
