-- How much of the order a process had when it said that something is white or discarded, installed a component, or was
-- told of a force.
SELECT life, run, process, incarnation, local_index, kind, position, members, detail, conf, green
FROM (
    SELECT life, run, process, incarnation, local_index, kind, position, members, detail, conf,
           coalesce(max(CASE WHEN kind IN ('recover', 'restored', 'mark') THEN position END)
                        OVER (PARTITION BY life ORDER BY local_index), 0) AS green
    FROM step
    WHERE kind IN ('recover', 'restored', 'white', 'discard', 'install', 'force') OR (kind = 'mark' AND colour = 'green')
) sofar
WHERE kind IN ('white', 'discard', 'install', 'force')
