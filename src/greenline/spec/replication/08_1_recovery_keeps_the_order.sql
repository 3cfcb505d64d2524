-- A life begins with at least what was durably green in any earlier one (notes I9).
SELECT run, process, incarnation, recovered,
       'position ' || CAST(promised AS STRING) || ' was durable in an earlier life' AS because
FROM (
    SELECT run, process, incarnation, recovered,
           max(durable) OVER (PARTITION BY run, process ORDER BY incarnation
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS promised
    FROM life
) lives
WHERE recovered < promised
