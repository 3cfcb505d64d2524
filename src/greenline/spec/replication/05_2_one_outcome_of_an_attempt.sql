-- All who install one attempt install the same: members, order, and votes, kept or not. Who was given up may have gone
-- another way.
SELECT run, prim, attempt, min(members) AS one, max(members) AS other, 'its installers differ in members or order' AS because
FROM installed
WHERE NOT is_given_up
GROUP BY run, prim, attempt
HAVING count(DISTINCT members) > 1 OR count(DISTINCT digest) > 1
UNION ALL
SELECT v.run, v.position, coalesce(i.attempt, 0), v.members, v.members, 'it has two different votes'
FROM step v
LEFT JOIN installed i
  ON i.life = v.life AND i.prim = v.position
ANTI JOIN given_up g ON g.run = v.run AND g.server = v.process
WHERE v.kind = 'voter'
GROUP BY v.run, v.position, coalesce(i.attempt, 0), v.members
HAVING count(DISTINCT v.sub) > 1 OR count(DISTINCT v.detail) > 1
