-- What engines and databases of processes did, in each life's own order. What a row lacks is made empty here, once;
-- rule 0 says so. A database that becomes what a snapshot says is `replaced`; `restored` is its engine's word.
SELECT l.life, t.run, t.process, t.incarnation, t.local_index, t.time,
       CASE WHEN t.layer = 'database' AND t.kind = 'restored' THEN 'replaced' ELSE t.kind END AS kind,
       coalesce(t.conf, '') AS conf,
       coalesce(t.message, '') AS message,
       coalesce(t.colour, '') AS colour,
       coalesce(t.position, -1) AS position,
       coalesce(t.sub, -1) AS sub,
       coalesce(t.members, '') AS members,
       coalesce(t.digest, '') AS digest,
       coalesce(t.detail, '') AS detail
FROM trace t
JOIN life l ON l.run = t.run AND l.process = t.process AND l.incarnation = t.incarnation
WHERE (t.layer = 'engine' AND t.kind IN ('phase', 'recover', 'newcomer', 'create', 'mark', 'durable', 'line', 'vulnerable',
                                         'cpc', 'install', 'voter', 'white', 'discard', 'roster', 'restored', 'left',
                                         'force'))
   OR (t.layer = 'database' AND t.kind IN ('apply', 'commit', 'opened', 'restored'))
