-- What is white at anybody, or discarded as white, is durably green at every server of the set that it knows (notes
-- I10); by when, as in 9.1.
SELECT w.run, w.process, w.incarnation, w.local_index, w.kind, w.position, e.process AS server,
       'it had no more than ' || CAST(coalesce(d.position, e.position) AS STRING) || ' on disk' AS because
FROM reach w
JOIN seat s ON s.run = w.run AND s.since <= w.green AND s.until > w.green
JOIN disk e ON e.run = w.run AND e.process = s.server AND e.conf = ''
LEFT JOIN given_up g ON g.run = w.run AND g.server = s.server
LEFT JOIN disk d ON d.run = w.run AND d.process = e.process AND d.conf = w.conf
WHERE (w.kind = 'white' OR (w.kind = 'discard' AND w.detail = 'white')) AND w.position > coalesce(d.position, e.position)
  AND g.run IS NULL
