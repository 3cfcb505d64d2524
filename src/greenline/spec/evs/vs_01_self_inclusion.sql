-- A process is a member of every configuration that it delivers.
SELECT run, process, conf, members, 'it is not among the members' AS because
FROM conf_event
WHERE instr(' ' || members || ' ', ' ' || process || ' ') = 0
