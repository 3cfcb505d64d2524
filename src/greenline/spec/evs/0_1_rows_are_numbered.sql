-- The rows of a life are numbered from 0, each number once, without gaps.
SELECT run, process, incarnation, local_index, 'it stands where number ' || CAST(place AS STRING) || ' should' AS because
FROM (
    SELECT run, process, incarnation, local_index,
           row_number() OVER (PARTITION BY run, process, incarnation ORDER BY local_index) - 1 AS place
    FROM trace
) numbered
WHERE local_index <> place
