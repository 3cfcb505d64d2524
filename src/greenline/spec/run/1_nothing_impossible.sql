-- No node halts because of our own mistake. A disk that fails may halt one.
SELECT run, process, incarnation, detail AS because
FROM trace
WHERE kind = 'halt' AND detail LIKE 'impossible: %'
