-- A query is answered: what was asked by the first call of it, and what was told; `is_sound` if the state that it shows
-- is kept.
SELECT r.run, r.message AS query, split_part(r.message, '?', 1) AS session, o.called, r.local_index AS returned,
       c.service, c.position AS after, o.verb, o.object,
       r.members AS server, r.colour, r.position, r.sub AS reds, r.detail AS answer,
       length(r.detail) - length(replace(r.detail, ' ', '')) AS items,
       NOT r.is_given_up AND u.run IS NULL AS is_sound
FROM said r
JOIN operation o ON o.run = r.run AND o.action = r.message AND o.called < r.local_index
JOIN said c ON c.run = o.run AND c.local_index = o.called
LEFT JOIN unsound u ON u.run = r.run AND u.process = r.members AND u.position <= r.position
WHERE r.kind = 'return' AND r.is_query AND r.colour IN ('green', 'dirty')
