-- Specification 6.2. A configuration is delivered at one logical time everywhere, and so is a message.
-- Reading S-e: of messages only for the services agreed and safe.
WITH timed AS (
    SELECT run, CASE WHEN kind <> 'deliver' THEN conf END AS conf, CASE WHEN kind = 'deliver' THEN message END AS message,
           process, ord
    FROM certificate
    WHERE kind IN ('regular', 'transitional') OR (kind = 'deliver' AND service IN ('agreed', 'safe'))
)
SELECT run, conf, message, min(process) AS process,
       'processes deliver it in different orders relative to other events' AS because
FROM timed
GROUP BY run, conf, message
HAVING min(ord) <> max(ord)
