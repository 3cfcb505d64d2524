-- Specification 7.2. If a safe message is delivered in a regular configuration, every member has delivered that
-- configuration. In a run that is not quiet a member that is up may do so yet, unless it is past it already (vs.3).
WITH need AS (SELECT DISTINCT run, conf FROM delivered WHERE service = 'safe' AND conf_kind = 'regular'),
quiet AS (SELECT DISTINCT run FROM trace WHERE kind = 'quiet')
SELECT n.run, m.process, n.conf, 'a safe message was delivered in it, but this member never installed it' AS because
FROM need n
JOIN member m ON m.run = n.run AND m.conf = n.conf
ANTI JOIN conf_event c ON c.run = n.run AND c.conf = n.conf AND c.process = m.process
LEFT JOIN ended e ON e.run = n.run AND e.process = m.process
LEFT JOIN quiet q ON q.run = n.run
WHERE q.run IS NOT NULL OR NOT coalesce(e.is_up, TRUE)
   OR e.counter >= CASE WHEN translate(split_part(n.conf, '.', 2), '0123456789', '') = '' THEN TRY_CAST(split_part(n.conf, '.', 2) AS BIGINT) END
