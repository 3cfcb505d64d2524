-- Where the order of a process begins, since when: at 0, or where a snapshot that it took over ends.
SELECT life, run, process, incarnation, local_index, position, digest
FROM step
WHERE kind = 'restored'
