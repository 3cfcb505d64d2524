-- An engine's life begins with one `recover`, unless its log is refused, a database's with one `opened`; every row has
-- what the rules rest on; who installs a component is in it and names its voters; what returns to a client was called.
WITH life_rows AS (
    SELECT life, min(run) AS run, min(process) AS process, min(incarnation) AS incarnation,
           count(CASE WHEN kind = 'recover' THEN 1 END) AS recovers,
           max(CASE WHEN kind = 'recover' THEN local_index END) AS recovered_at,
           min(CASE WHEN kind IN ('create', 'mark', 'durable', 'line', 'vulnerable', 'cpc', 'install', 'white', 'discard',
                                  'roster', 'restored', 'left', 'force')
                    THEN local_index END) AS first_step,
           count(CASE WHEN kind IN ('apply', 'commit', 'opened', 'replaced') THEN 1 END) AS database_rows,
           count(CASE WHEN kind = 'opened' THEN 1 END) AS openings,
           max(CASE WHEN kind = 'opened' THEN local_index END) AS opened_at,
           min(CASE WHEN kind IN ('apply', 'commit', 'replaced') THEN local_index END) AS first_data
    FROM step
    GROUP BY life
),
voters AS (
    SELECT life, position AS prim, count(*) AS voters
    FROM step
    WHERE kind = 'voter'
    GROUP BY life, position
)
SELECT run, process, incarnation, recovered_at AS local_index, 'its life does not begin with one recover' AS because
FROM life_rows
WHERE recovers > 1 OR first_step < recovered_at
   OR (recovers = 0 AND (first_step IS NOT NULL OR database_rows > 0))
UNION ALL
SELECT run, process, incarnation, opened_at, 'its database is used before it is opened, or opened twice'
FROM life_rows
WHERE database_rows > 0 AND (openings <> 1 OR first_data < opened_at)
UNION ALL
SELECT run, process, incarnation, local_index, 'a place is missing'
FROM step
WHERE (kind NOT IN ('phase', 'create', 'mark', 'newcomer', 'left') AND position < 0)
   OR (kind IN ('recover', 'create', 'cpc', 'vulnerable', 'install', 'voter', 'apply') AND sub < 0)
   OR (kind IN ('line', 'cpc', 'vulnerable', 'voter', 'roster', 'force') AND members = '')
   OR (kind IN ('roster', 'restored') AND digest = '')
   OR (kind = 'roster' AND detail NOT LIKE '% done' AND detail NOT LIKE '% failed%')
   OR (kind = 'apply' AND message = '')
UNION ALL
SELECT run, process, incarnation, local_index, 'it is no verdict: ' || detail
FROM step
WHERE kind = 'apply' AND detail NOT IN ('done', 'failed', 'conflict', 'again', 'early', 'crowded', 'expired', 'released')
UNION ALL
SELECT run, process, incarnation, local_index, 'it is no mark: ' || colour || ' ' || bundle
FROM mark
WHERE colour NOT IN ('red', 'yellow', 'green') OR bundle_index < 1
   OR (colour = 'green' AND (position < 1 OR digest = ''))
UNION ALL
SELECT run, process, incarnation, local_index, 'it makes what is not its own: ' || message
FROM step
WHERE kind = 'create'
  AND (split_part(message, '#', 1) <> process OR coalesce(CASE WHEN translate(split_part(message, '#', 2), '0123456789', '') = ''
                                                               THEN TRY_CAST(split_part(message, '#', 2) AS BIGINT) END, 0) < 1)
UNION ALL
SELECT i.run, i.process, i.incarnation, i.local_index, 'it installs a component without itself, or without all its voters'
FROM installed i
LEFT JOIN voters v ON v.life = i.life AND v.prim = i.prim
WHERE instr(' ' || i.members || ' ', ' ' || i.process || ' ') = 0
   OR coalesce(v.voters, 0) <> length(i.members) - length(replace(i.members, ' ', '')) + 1
UNION ALL
SELECT r.run, '*', 0, r.local_index, 'nobody called what returned, or it returned green without a place'
FROM said r
LEFT JOIN operation o ON o.run = r.run AND o.action = r.message AND o.called < r.local_index
WHERE r.kind IN ('return', 'refused')
  AND (o.called IS NULL
       OR (r.kind = 'return' AND r.colour NOT IN ('red', 'green') AND NOT (r.is_query AND r.colour = 'dirty'))
       OR (r.kind = 'return' AND r.colour IN ('green', 'dirty') AND (r.position < 0 OR r.sub < 0)))
