-- A configuration has an identifier and members, and a message has a name.
SELECT run, process, incarnation, local_index, kind, 'it lacks a name, or members' AS because
FROM event
WHERE (kind IN ('regular', 'transitional') AND (conf = '' OR members = ''))
   OR (kind IN ('generate', 'send', 'deliver') AND message = '')
