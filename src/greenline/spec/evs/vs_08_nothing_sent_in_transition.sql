-- Nothing is sent in a transitional configuration.
SELECT run, process, message, conf, 'it was sent in a transitional configuration' AS because
FROM sent
WHERE conf_kind = 'transitional'
