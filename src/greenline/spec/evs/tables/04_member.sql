-- Who is in a configuration, one row each.
SELECT c.run, c.conf, c.kind, c.reg, split_part(c.members, ' ', CAST(r.k AS INT)) AS process
FROM conf c
JOIN range(1, 257) AS r(k) ON r.k <= length(c.members) - length(replace(c.members, ' ', '')) + 1
WHERE c.members <> ''
