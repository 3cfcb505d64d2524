-- An action is applied; kept, unless its life is over and nobody saw it committed (what was not, is applied again), or
-- its server was given up and others do not agree. It is decided there, unless it was decided before, or is not to be.
SELECT s.life, s.run, s.process, s.incarnation, s.local_index, s.position, s.sub, s.message AS action, s.digest,
       s.detail AS verdict,
       s.detail IN ('done', 'failed', 'conflict') AS is_decided,
       (NOT l.is_over OR s.position <= l.data_kept) AND (g.run IS NULL OR s.position <= g.agreed) AS is_kept
FROM step s
JOIN life l ON l.life = s.life
LEFT JOIN given_up g ON g.run = s.run AND g.server = s.process
WHERE s.kind = 'apply'
