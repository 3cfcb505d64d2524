-- The first configuration of a life is regular and has the process alone.
SELECT run, process, conf, members, 'a life begins in a regular configuration of its own' AS because
FROM conf_event
WHERE prev_conf IS NULL AND (kind <> 'regular' OR members <> process)
