-- What is delivered is what was generated, byte for byte.
SELECT d.run, d.process, d.incarnation, d.message, 'its content was generated as ' || g.digest || ', and delivered as ' || d.digest AS because
FROM trace d
JOIN (SELECT run, message, digest FROM trace WHERE kind = 'generate') g ON g.run = d.run AND g.message = d.message
WHERE d.kind = 'deliver' AND d.digest <> g.digest
