-- Every primary component holds a quorum of the one before it: more than half of its votes, or half of them and the
-- distinguished server. Of one that is kept in any case; of one that may have been lost, at least of one (notes I6).
-- Whom an operator gave up for dead does not count, neither against it nor by itself.
WITH component AS (SELECT DISTINCT run, prim, attempt, members FROM installed WHERE NOT is_given_up),
kept AS (SELECT DISTINCT run, prim, attempt FROM installed WHERE is_kept),
-- Votes are told by installers; those of component 0, by everybody, with a first life.
vote AS (
    SELECT v.run, v.position AS prim, coalesce(i.attempt, 0) AS attempt, v.members AS server,
           CAST(max(v.sub) AS DECIMAL(38, 0)) AS weight,
           max(CASE WHEN v.detail = 'distinguished' THEN 1 ELSE 0 END) AS is_distinguished,
           max(CASE WHEN g.run IS NULL THEN 0 ELSE 1 END) AS is_given_up
    FROM step v
    LEFT JOIN installed i
      ON i.life = v.life AND i.prim = v.position
    LEFT JOIN given_up g ON g.run = v.run AND g.server = v.members
    WHERE v.kind = 'voter' AND (v.position = 0 OR i.prim IS NOT NULL)
    GROUP BY v.run, v.position, coalesce(i.attempt, 0), v.members
),
counted AS (
    SELECT c.run, c.prim, c.attempt, c.members, v.attempt AS attempt_before,
           sum(v.weight) AS votes,
           sum(CASE WHEN v.is_given_up = 0 THEN v.weight ELSE 0 END) AS living,
           sum(CASE WHEN instr(' ' || c.members || ' ', ' ' || v.server || ' ') > 0 THEN v.weight ELSE 0 END) AS held,
           max(CASE WHEN instr(' ' || c.members || ' ', ' ' || v.server || ' ') > 0 THEN v.is_distinguished ELSE 0 END)
               AS is_distinguished,
           max(CASE WHEN v.prim = 0 OR k.run IS NOT NULL THEN 1 ELSE 0 END) AS is_kept
    FROM component c
    JOIN vote v ON v.run = c.run AND v.prim = c.prim - 1
    LEFT JOIN kept k ON k.run = v.run AND k.prim = v.prim AND k.attempt = v.attempt
    GROUP BY c.run, c.prim, c.attempt, c.members, v.attempt
),
weighed AS (
    SELECT *, CASE WHEN 2 * held > votes OR (2 * held = votes AND is_distinguished = 1)
                     OR (living < votes AND 2 * held >= living) THEN 1 ELSE 0 END AS is_enough
    FROM counted
),
judged AS (
    SELECT run, prim, attempt, members, max(is_enough) AS is_quorum,
           max(CASE WHEN is_enough = 1 THEN 0 ELSE is_kept END) AS is_none
    FROM weighed
    GROUP BY run, prim, attempt, members
)
SELECT c.run, c.prim, c.attempt, c.members,
       CASE WHEN j.run IS NULL THEN 'nobody installed the component before it'
            ELSE 'it holds no quorum of the component before it' END AS because
FROM component c
LEFT JOIN judged j ON j.run = c.run AND j.prim = c.prim AND j.attempt = c.attempt AND j.members = c.members
WHERE j.run IS NULL OR j.is_quorum = 0 OR j.is_none = 1
