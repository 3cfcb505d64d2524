-- A bundle becomes green in four ways only: delivered in a primary component (OR-1.1), yellow (OR-1.2) or red (OR-2) at its
-- installation, or learnt from who has it green (OR-3); the first only after an installation in this life (notes I7).
WITH first_install AS (
    SELECT life, min(local_index) AS local_index FROM installed GROUP BY life
)
SELECT m.run, m.process, m.incarnation, m.local_index, m.bundle,
       'it becomes green by ' || CASE WHEN m.detail = '' THEN 'no rule' ELSE m.detail END AS because
FROM mark m
LEFT JOIN first_install f ON f.life = m.life
WHERE m.colour = 'green'
  AND (m.detail NOT IN ('OR-1.1 RegPrim', 'OR-1.2 Construct', 'OR-1.2 Un', 'OR-2 Construct', 'OR-2 Un',
                        'OR-3 ExchangeActions', 'OR-3 NonPrim')
       OR (m.detail = 'OR-1.1 RegPrim' AND (f.local_index IS NULL OR f.local_index > m.local_index)))
