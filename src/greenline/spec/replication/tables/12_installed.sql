-- A primary component is installed; kept, unless its life is over and its disk is not seen to have it, or its server
-- was given up. The disk has it if it keeps a bundle that was ordered in it (the log is a sequence), or if its process
-- took part in a later exchange (a State is forced).
WITH proof AS (
    SELECT life, local_index FROM mark WHERE is_kept AND detail = 'OR-1.1 RegPrim'
    UNION ALL
    SELECT life, local_index
    FROM step
    WHERE kind = 'phase' AND detail IN ('ExchangeActions', 'Construct')
),
proven AS (
    SELECT life, max(local_index) AS local_index FROM proof GROUP BY life
)
SELECT s.life, s.run, s.process, s.incarnation, s.local_index, s.position AS prim, s.sub AS attempt, s.members, s.digest,
       g.run IS NOT NULL AS is_given_up,
       (NOT l.is_over OR coalesce(p.local_index > s.local_index, FALSE)) AND g.run IS NULL AS is_kept
FROM step s
JOIN life l ON l.life = s.life
LEFT JOIN proven p ON p.life = s.life
LEFT JOIN given_up g ON g.run = s.run AND g.server = s.process
WHERE s.kind = 'install'
