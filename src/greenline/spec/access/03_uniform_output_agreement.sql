-- What a client was told for good is what every replica that keeps this place has decided there, and nowhere else, also
-- if the one that answered has died since (C4).
SELECT DISTINCT t.run, t.action, a.process, t.position, t.sub,
       CASE WHEN a.action <> t.action THEN a.action || ' is there'
            WHEN NOT a.is_decided THEN 'it is ' || a.verdict || ' there'
            ELSE 'its outcome there is another' END AS because
FROM told t
JOIN applied a ON a.run = t.run AND a.position = t.position AND a.sub = t.sub
WHERE a.is_kept AND (a.action <> t.action OR NOT a.is_decided OR a.digest <> t.digest)
UNION ALL
SELECT DISTINCT t.run, t.action, '', t.position, t.sub,
       'it is decided at ' || CAST(d.position AS STRING) || '.' || CAST(d.sub AS STRING)
FROM told t
JOIN decision d ON d.run = t.run AND d.action = t.action
WHERE d.position <> t.position OR d.sub <> t.sub
