-- What is read was posted, with that text.
SELECT d.run, d.process, d.incarnation, d.message, 'it was read, but nobody posted it with this text' AS because
FROM trace d
ANTI JOIN (SELECT run, message, digest FROM trace WHERE kind = 'generate') g
  ON g.run = d.run AND g.message = d.message AND g.digest = d.digest
WHERE d.kind = 'deliver'
