-- A bundle gets a colour. A green mark is kept unless its life is over and the disk is not seen to have it: what a
-- crash of everybody takes may be ordered otherwise (notes, GAP 3).
SELECT s.life, s.run, s.process, s.incarnation, s.local_index, s.conf, s.message AS bundle, s.colour,
       s.position, s.digest, s.detail,
       split_part(s.message, '#', 1) AS creator,
       coalesce(TRY_CAST(split_part(s.message, '#', 2) AS BIGINT), 0) AS bundle_index,
       s.colour = 'green' AND (NOT l.is_over OR s.position <= l.order_kept) AS is_kept
FROM step s
JOIN life l ON l.life = s.life
WHERE s.kind = 'mark'
