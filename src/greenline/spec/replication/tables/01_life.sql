-- A life: a number for it; is it over, what did its disk give it at the start, what did it keep for the next one.
-- `order_kept` and `data_kept` are the greatest green and committed positions of it that no later life is seen to have
-- lost; `found` is the greatest position to which a snapshot has brought its database in an earlier life.
WITH told AS (
    SELECT run, process, incarnation,
           max(CASE WHEN kind IN ('crash', 'halt') THEN 1 ELSE 0 END) AS is_dead,
           min(CASE WHEN kind = 'recover' THEN coalesce(position, -1) END) AS recovered,
           min(CASE WHEN kind = 'recover' THEN coalesce(sub, -1) END) AS last_index,
           min(CASE WHEN kind = 'opened' THEN coalesce(position, -1) END) AS opened,
           max(CASE WHEN kind = 'durable' THEN coalesce(position, -1) END) AS durable,
           max(CASE WHEN kind = 'commit' OR (layer = 'database' AND kind = 'restored') THEN coalesce(position, -1) END)
               AS committed,
           max(CASE WHEN layer = 'database' AND kind = 'restored' THEN coalesce(position, -1) END) AS replaced
    FROM trace
    WHERE process <> '*'
      AND (kind IN ('start', 'crash', 'halt') OR (layer = 'engine' AND kind IN ('recover', 'durable'))
           OR (layer = 'database' AND kind IN ('opened', 'commit', 'restored')))
    GROUP BY run, process, incarnation
    HAVING count(CASE WHEN kind IN ('start', 'crash', 'halt') THEN 1 END) > 0
),
lives AS (
    SELECT *,
           lead(incarnation) OVER lives AS next_life,
           min(recovered) OVER later AS least_recovered,
           min(opened) OVER later AS least_opened,
           max(replaced) OVER earlier AS found
    FROM told
    WINDOW lives AS (PARTITION BY run, process ORDER BY incarnation),
           later AS (PARTITION BY run, process ORDER BY incarnation ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
           earlier AS (PARTITION BY run, process ORDER BY incarnation ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT row_number() OVER (ORDER BY run, process, incarnation) AS life,
       run, process, incarnation, recovered, last_index, durable,
       coalesce(found, 0) AS found,
       is_dead = 1 OR next_life IS NOT NULL AS is_over,
       next_life IS NULL AS is_last,
       greatest(coalesce(durable, -1), coalesce(least_recovered, -1)) AS order_kept,
       greatest(coalesce(committed, -1), coalesce(least_opened, -1)) AS data_kept
FROM lives
