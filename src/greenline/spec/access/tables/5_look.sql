-- Somebody looked at an object, and saw something (of a list: how many values): a query, at its position; an
-- interactive action, just before its place; a database, in the end. `stands` is what the order makes of it there.
WITH seen AS (
    SELECT run, 'query' AS sort, query AS who, returned AS local_index, service AS how, object, position,
           4000000000000000000 AS sub,
           CASE WHEN object LIKE 'l%' THEN CAST(items AS STRING) ELSE split_part(answer, ' ', 2) END AS value
    FROM query
    WHERE is_sound AND (service IN ('strict', 'session', 'weak') OR (service = 'dirty' AND object LIKE 'l%'))
      AND verb IN ('read', 'count', 'get')
    UNION ALL
    SELECT run, 'interactive', action, 0, verdict,
           split_part(substr(request, instr(request, ' if ') + 4), ' ', 1), position, sub,
           split_part(substr(request, instr(request, ' if ') + 4), ' ', 2)
    FROM decision
    WHERE instr(request, ' if ') > 0
    UNION ALL
    SELECT f.run, 'final', f.members, f.local_index, 'final', o.object, f.position, 4000000000000000000,
           CASE WHEN instr(' ' || f.detail || ' ', ' ' || o.object || ' ') > 0
                THEN split_part(substr(' ' || f.detail || ' ',
                                       instr(' ' || f.detail || ' ', ' ' || o.object || ' ') + length(o.object) + 2), ' ', 1)
                WHEN o.object LIKE 'c%' THEN '0'
                ELSE '-' END
    FROM said f
    JOIN (SELECT DISTINCT run, object FROM operation WHERE verb IN ('add', 'put')) o ON o.run = f.run
    WHERE f.kind = 'final'
),
placed AS (
    SELECT run, sort, who, local_index, how, object, position, sub, value,
           coalesce(max(nth) OVER (PARTITION BY run, object ORDER BY position, sub, CASE WHEN nth IS NULL THEN 0 ELSE 1 END
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), 0) AS upto
    FROM (
        SELECT run, sort, who, local_index, how, object, position, sub, value, NULL AS nth FROM seen
        UNION ALL
        SELECT run, '', '', 0, '', object, position, sub, '', nth FROM effect
    ) happened
)
SELECT p.run, p.sort, p.who, p.local_index, p.how, p.object, p.position, p.sub, p.value, p.upto,
       coalesce(e.stands, CASE WHEN p.object LIKE 'l%' OR p.object LIKE 'c%' THEN '0' ELSE '-' END) AS stands
FROM placed p
LEFT JOIN effect e ON e.run = p.run AND e.object = p.object AND e.nth = p.upto
WHERE p.sort <> ''
