-- What the load generator and the world say, by their one clock.
SELECT run, local_index, kind, coalesce(message, '') AS message, coalesce(colour, '') AS colour,
       coalesce(position, -1) AS position, coalesce(sub, -1) AS sub, coalesce(members, '') AS members,
       coalesce(digest, '') AS digest, coalesce(detail, '') AS detail,
       coalesce(colour = 'green' AND service IN ('local', 'quorum'), FALSE) AS is_safe
FROM trace
WHERE process = '*' AND kind IN ('call', 'return', 'refused', 'final', 'fault', 'healed', 'quiet')
