-- A change of the server set, as an engine says it: what was asked (`verb`, `server`), whether it was done, who is a
-- server from there on; `nth` at its position; `part` of its life, as a snapshot begins another. Kept, unless its life is
-- over and its disk is not seen to have it.
SELECT s.life, s.run, s.process, s.incarnation, s.local_index, s.position, s.members, s.digest, s.detail,
       split_part(s.detail, ' ', 1) AS verb,
       split_part(s.detail, ' ', 2) AS server,
       s.detail LIKE '% done' AS is_done,
       s.detail LIKE 'leave % void %' AS is_void,
       row_number() OVER (PARTITION BY s.life, s.position ORDER BY s.local_index) AS nth,
       s.part,
       NOT l.is_over OR s.position <= l.order_kept AS is_kept
FROM (
    SELECT *, count(CASE WHEN kind = 'restored' THEN 1 END) OVER (PARTITION BY life ORDER BY local_index) AS part
    FROM step
    WHERE kind IN ('roster', 'restored')
) s
JOIN life l ON l.life = s.life
WHERE s.kind = 'roster'
