-- The rows of a life are numbered from 0, each number once, without gaps.
SELECT run, process, incarnation, local_index,
       CASE WHEN local_index = before THEN 'it is there twice: is one trace here twice, or another one with runs of the same names?'
            ELSE 'it stands where number ' || CAST(place AS STRING) || ' should' END AS because
FROM (
    SELECT run, process, incarnation, local_index,
           row_number() OVER (PARTITION BY run, process, incarnation ORDER BY local_index) - 1 AS place,
           lag(local_index) OVER (PARTITION BY run, process, incarnation ORDER BY local_index) AS before
    FROM trace
) numbered
WHERE local_index <> place
