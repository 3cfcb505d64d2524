-- What is white at anybody, or discarded as white, is durably green at every server (notes I10); by when, as in 9.1.
SELECT w.run, w.process, w.incarnation, w.local_index, w.kind, w.position, e.process AS server,
       'it had no more than ' || CAST(coalesce(d.position, e.position) AS STRING) || ' on disk' AS because
FROM step w
JOIN disk e ON e.run = w.run AND e.conf = ''
LEFT JOIN disk d ON d.run = w.run AND d.process = e.process AND d.conf = w.conf
WHERE (w.kind = 'white' OR (w.kind = 'discard' AND w.detail = 'white')) AND w.position > coalesce(d.position, e.position)
