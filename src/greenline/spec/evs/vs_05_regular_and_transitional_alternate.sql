-- Regular and transitional configurations alternate, and a transitional one has one predecessor and one successor.
SELECT run, process, conf, 'it follows another ' || kind || ' configuration' AS because
FROM conf_event
WHERE prev_kind = kind
UNION ALL
SELECT run, min(process) AS process, conf, 'it has several predecessors or successors' AS because
FROM conf_event
WHERE kind = 'transitional'
GROUP BY run, conf
HAVING count(DISTINCT prev_conf) > 1 OR count(DISTINCT next_conf) > 1
