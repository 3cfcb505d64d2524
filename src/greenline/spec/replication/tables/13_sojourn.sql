-- Which life was in which configuration, and since when, as its engine knew: a router tells of a configuration before
-- the engine has heard all that came in the one before it.
SELECT life, run, process, conf, min(local_index) AS since
FROM step
WHERE conf <> '' AND kind NOT IN ('apply', 'commit', 'opened', 'replaced')
GROUP BY life, run, process, conf
