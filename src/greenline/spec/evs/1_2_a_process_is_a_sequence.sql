-- Specification 1.2. The events of one process are totally ordered: no two of them stand at one place.
SELECT run, process, incarnation, local_index, 'several events stand at one place of its order' AS because
FROM event
GROUP BY run, process, incarnation, local_index
HAVING count(*) > 1
