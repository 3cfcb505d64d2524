-- An action is applied; kept, unless its life is over and nobody saw it committed: what was not, is applied again.
SELECT s.run, s.process, s.incarnation, s.local_index, s.position, s.sub, s.message AS action, s.digest,
       NOT l.is_over OR s.position <= l.data_kept AS is_kept
FROM step s
JOIN life l ON l.life = s.life
WHERE s.kind = 'apply'
