-- Who is called after another has returned sees all that the other saw; and what is called to be appended then stands
-- behind all that was seen (linearizability, by the load generator's clock).
WITH seen AS (
    SELECT run, list, action, items, called,
           max(items_then) OVER (PARTITION BY run, list ORDER BY instant
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (
        SELECT run, list, action, items, called, called AS instant, NULL AS items_then FROM seen_list
        UNION ALL
        SELECT run, list, action, NULL, NULL, returned, items FROM seen_list
        UNION ALL
        SELECT run, list, action, place - 1, called, called, NULL FROM append WHERE place IS NOT NULL
    ) happened
)
SELECT run, list, action, CAST(before AS STRING) || ' values had been seen when it was called' AS because
FROM seen
WHERE called IS NOT NULL AND items < before
