-- In a life green positions rise by one, from the one that the log recovered, or where a snapshot ended; and a snapshot
-- takes nobody back (notes I2).
SELECT run, process, incarnation, local_index, position, message,
       'it follows position ' || CAST(before AS STRING) AS because
FROM (
    SELECT run, process, incarnation, local_index, kind, message, position,
           lag(position) OVER (PARTITION BY life ORDER BY local_index, kind, position, message) AS before
    FROM step
    WHERE kind IN ('recover', 'restored') OR (kind = 'mark' AND colour = 'green')
) numbered
WHERE (kind = 'mark' AND position <> before + 1) OR (kind = 'restored' AND position < before)
