-- What the specification speaks of: the events of processes, numbered in each process's own order.
-- A halt is a crash: the process stops there. Equal indices are no order, and a name that is missing is no name;
-- rules 0.1 and 0.5 say so.
SELECT run, process, incarnation, local_index,
       row_number() OVER (PARTITION BY run, process 
           ORDER BY incarnation, local_index, kind, message NULLS LAST, conf NULLS LAST) AS n,
       CASE WHEN kind = 'halt' THEN 'crash' ELSE kind END AS kind,
       CASE WHEN kind IN ('regular', 'transitional') THEN coalesce(conf, '') ELSE conf END AS conf,
       CASE WHEN kind IN ('generate', 'send', 'deliver') THEN coalesce(message, '') ELSE message END AS message,
       service,
       CASE WHEN kind IN ('regular', 'transitional') THEN coalesce(members, '') ELSE members END AS members
FROM trace
WHERE process <> '*'
  AND kind IN ('start', 'generate', 'send', 'deliver', 'regular', 'transitional', 'crash', 'halt')
