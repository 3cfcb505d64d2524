-- Once the network is whole, everybody is up and the run is quiet, all end in one configuration with everybody in it
-- who was not stopped for good.
WITH quiet AS (SELECT run FROM trace WHERE kind = 'quiet'),
world AS (
    SELECT run, kind, row_number() OVER (PARTITION BY run ORDER BY local_index DESC) AS from_the_end
    FROM trace
    WHERE process = '*' AND kind IN ('fault', 'healed')
),
gone AS (SELECT run, members AS process FROM trace WHERE process = '*' AND kind = 'gone'),
troubled AS (SELECT run FROM world WHERE from_the_end = 1 AND kind = 'fault'),
everybody AS (
    SELECT t.run, t.process, max(t.incarnation) AS life
    FROM trace t
    JOIN quiet q ON q.run = t.run
    ANTI JOIN troubled x ON x.run = t.run
    ANTI JOIN gone g ON g.run = t.run AND g.process = t.process
    WHERE t.kind = 'start'
    GROUP BY t.run, t.process
),
ends AS (
    SELECT c.run, c.process, c.conf, c.members,
           row_number() OVER (PARTITION BY c.run, c.process ORDER BY c.local_index DESC) AS from_the_end
    FROM trace c
    JOIN everybody e ON e.run = c.run AND e.process = c.process AND e.life = c.incarnation
    WHERE c.kind IN ('regular', 'transitional')
),
number_of AS (SELECT run, count(*) AS processes FROM everybody GROUP BY run)
SELECT e.run, e.process, e.conf, 'it ends in ' || e.conf || ' with ' || e.members || ', and not with everybody' AS because
FROM ends e
JOIN number_of n ON n.run = e.run
WHERE e.from_the_end = 1 AND length(e.members) - length(replace(e.members, ' ', '')) + 1 <> n.processes
