-- Lists as clients saw them: `k v1 v2 ...` in answer to `append k v` or `read k`, k beginning with l.
SELECT run, action, verb, object AS list, argument, called, returned, answer,
       length(answer) - length(replace(answer, ' ', '')) AS items
FROM operation
WHERE returned IS NOT NULL AND NOT is_conflict AND (verb = 'append' OR (verb = 'read' AND object LIKE 'l%'))
