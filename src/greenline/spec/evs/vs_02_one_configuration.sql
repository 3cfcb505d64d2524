-- Reading S-f. The identifier of a configuration determines its kind and its members.
SELECT run, conf, 'it has several kinds or member sets' AS because
FROM conf_event
GROUP BY run, conf
HAVING count(DISTINCT kind || ' ' || members) > 1
