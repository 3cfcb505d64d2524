-- What the specification speaks of: the events of processes, numbered in each process's own order.
-- A halt is a crash: the process stops there. Equal indices are no order; rule 0.1 says so.
SELECT run, process, incarnation, local_index,
       row_number() OVER (PARTITION BY run, process ORDER BY incarnation, local_index, kind, message, conf) AS n,
       CASE WHEN kind = 'halt' THEN 'crash' ELSE kind END AS kind,
       conf, message, service, members
FROM trace
WHERE process <> '*'
  AND kind IN ('start', 'generate', 'send', 'deliver', 'regular', 'transitional', 'crash', 'halt')
