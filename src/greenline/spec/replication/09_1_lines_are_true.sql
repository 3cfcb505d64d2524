-- Nobody believes more of a server's disk than it has: what is believed in a configuration was durable there by the end of the
-- life in which the server was in that configuration, or of any life if it was not.
SELECT b.run, b.process, b.incarnation, b.local_index, b.members AS server, b.position,
       'it had no more than ' || CAST(coalesce(d.position, e.position, 0) AS STRING) || ' on disk' AS because
FROM step b
LEFT JOIN disk d ON d.run = b.run AND d.process = b.members AND d.conf = b.conf
LEFT JOIN disk e ON e.run = b.run AND e.process = b.members AND e.conf = ''
WHERE b.kind = 'line' AND b.position > coalesce(d.position, e.position, 0)
