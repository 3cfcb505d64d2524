-- Specification 7.1. A safe message that is delivered in c is delivered by every member of c in the same family, unless
-- it crashes there. Reading S-c: the family counts, not the very configuration. In a run that is not quiet a member
-- that is still up and has not moved on may deliver it yet, unless it is past that configuration already (vs.3).
WITH need AS (SELECT DISTINCT run, message, conf, family FROM delivered WHERE service = 'safe'),
lacking AS (
    SELECT n.run, n.message, n.conf, n.family, m.process
    FROM need n
    JOIN member m ON m.run = n.run AND m.conf = n.conf
    ANTI JOIN delivered d
      ON d.run = n.run AND d.message = n.message AND d.process = m.process AND d.family = n.family
),
stayed AS (
    SELECT run, process, family,
           max(CASE WHEN has_left THEN 1 ELSE 0 END) AS has_left,
           max(CASE WHEN has_crashed THEN 1 ELSE 0 END) AS has_crashed
    FROM stay
    GROUP BY run, process, family
),
quiet AS (SELECT DISTINCT run FROM trace WHERE kind = 'quiet')
SELECT l.run, l.process, l.message, l.conf,
       CASE WHEN s.has_left = 1 THEN 'it moved on without it'
            WHEN s.process IS NULL THEN 'it was never in that configuration'
            ELSE 'it never delivered it, though the run fell quiet' END AS because
FROM lacking l
LEFT JOIN stayed s ON s.run = l.run AND s.process = l.process AND s.family = l.family
LEFT JOIN ended e ON e.run = l.run AND e.process = l.process
LEFT JOIN quiet q ON q.run = l.run
WHERE coalesce(s.has_crashed, 0) = 0
  AND (coalesce(s.has_left, 0) = 1 OR q.run IS NOT NULL OR NOT coalesce(e.is_up, TRUE)
       OR (s.process IS NULL AND e.counter >= CASE WHEN translate(split_part(l.family, '.', 2), '0123456789', '') = '' THEN TRY_CAST(split_part(l.family, '.', 2) AS BIGINT) END))
