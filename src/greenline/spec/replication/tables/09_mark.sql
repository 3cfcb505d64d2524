-- A bundle gets a colour. A green mark is kept unless its life is over and the disk is not seen to have it, or its
-- server was given up and others do not agree: what a crash of everybody takes may be ordered otherwise (notes, GAP 3).
-- `base`: where its process's order begins.
WITH based AS (
    SELECT s.*,
           coalesce(max(CASE WHEN s.kind = 'restored' THEN s.position END)
                        OVER (PARTITION BY s.run, s.process ORDER BY s.incarnation, s.local_index), 0) AS base
    FROM step s
    WHERE s.kind IN ('mark', 'restored')
)
SELECT s.life, s.run, s.process, s.incarnation, s.local_index, s.conf, s.message AS bundle, s.colour,
       s.position, s.digest, s.detail, s.base,
       split_part(s.message, '#', 1) AS creator,
       coalesce(CASE WHEN translate(split_part(s.message, '#', 2), '0123456789', '') = ''
                     THEN TRY_CAST(split_part(s.message, '#', 2) AS BIGINT) END, 0) AS bundle_index,
       s.colour = 'green' AND (NOT l.is_over OR s.position <= l.order_kept) 
       AND (g.run IS NULL OR s.position <= g.agreed) AS is_kept
FROM based s
JOIN life l ON l.life = s.life
LEFT JOIN given_up g ON g.run = s.run AND g.server = s.process
WHERE s.kind = 'mark'
