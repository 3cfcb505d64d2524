-- What the load generator and the world say, by their one clock. An answer is safe if its place is: green at level
-- local or quorum, of a server that was not given up.
SELECT t.run, t.local_index, t.kind, coalesce(t.message, '') AS message, coalesce(t.colour, '') AS colour,
       coalesce(t.position, -1) AS position, coalesce(t.sub, -1) AS sub, coalesce(t.members, '') AS members,
       coalesce(t.digest, '') AS digest, coalesce(t.detail, '') AS detail, coalesce(t.service, '') AS service,
       instr(coalesce(t.message, ''), '?') > 0 AS is_query,
       g.run IS NOT NULL AS is_given_up,
       g.run IS NULL AND coalesce(t.colour = 'green' AND t.service IN ('local', 'quorum'), FALSE) AS is_safe
FROM trace t
LEFT JOIN given_up g ON g.run = t.run AND g.server = t.members
WHERE t.process = '*' AND t.kind IN ('call', 'return', 'refused', 'final', 'fault', 'healed', 'quiet', 'gone')
