-- What is read was posted, with that text and that service.
SELECT d.run, d.process, d.incarnation, d.message, 'it was read, but nobody posted it so' AS because
FROM trace d
ANTI JOIN (SELECT run, message, digest, service FROM trace WHERE kind = 'generate') g
  ON g.run = d.run AND g.message = d.message AND g.digest = d.digest AND g.service IS NOT DISTINCT FROM d.service
WHERE d.kind = 'deliver'
