-- Specification 6.2. A configuration is delivered at one logical time everywhere, and so is a message.
-- Reading S-e: of messages only for the services agreed and safe.
WITH timed AS (
    SELECT e.run, e.conf, CAST(NULL AS STRING) AS message, e.process, c.ord
    FROM conf_event e
    JOIN certificate c ON c.run = e.run AND c.process = e.process AND c.n = e.n
    UNION ALL
    SELECT d.run, CAST(NULL AS STRING) AS conf, d.message, d.process, c.ord
    FROM delivered d
    JOIN certificate c ON c.run = d.run AND c.process = d.process AND c.n = d.n
    WHERE d.service IN ('agreed', 'safe')
)
SELECT run, conf, message, min(process) AS process,
       'processes deliver it in different orders relative to other events' AS because
FROM timed
GROUP BY run, conf, message
HAVING min(ord) <> max(ord)
