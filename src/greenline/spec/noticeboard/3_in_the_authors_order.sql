-- The notices of one life of an author are read in the order in which they were written, without gaps.
WITH read AS (
    SELECT run, process, incarnation, local_index, message,
           split_part(message, ':', 1) AS author,
           split_part(message, ':', 2) AS life,
           CASE WHEN translate(split_part(message, ':', 3), '0123456789', '') = ''
                THEN TRY_CAST(split_part(message, ':', 3) AS BIGINT) END AS number
    FROM trace
    WHERE kind = 'deliver'
),
counted AS (
    SELECT *, row_number() OVER (PARTITION BY run, process, incarnation, author, life ORDER BY local_index) AS place
    FROM read
)
SELECT run, process, incarnation, message,
       'it was read as number ' || CAST(place AS STRING) || ' of that life of its author' AS because
FROM counted
WHERE number IS DISTINCT FROM place
