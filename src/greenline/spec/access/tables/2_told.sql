-- A client is told for good what became of an action: green at level local or quorum.
SELECT s.run, s.message AS action, s.local_index, s.position, s.sub, s.digest, s.members AS server
FROM said s
WHERE s.kind = 'return' AND s.is_safe AND NOT s.is_query
