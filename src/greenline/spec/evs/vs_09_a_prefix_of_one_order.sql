-- In a regular configuration every process delivers a prefix of one order: its k-th agreed or safe message is everybody's.
WITH numbered AS (
    SELECT run, conf, message, row_number() OVER (PARTITION BY run, process, incarnation, conf ORDER BY n) AS place
    FROM delivered
    WHERE conf_kind = 'regular' AND service IN ('agreed', 'safe')
),
differing AS (
    SELECT run, conf, place FROM numbered GROUP BY run, conf, place HAVING count(DISTINCT message) > 1
)
SELECT run, conf, min(place) AS place, 'from this place on different messages are delivered' AS because
FROM differing
GROUP BY run, conf
