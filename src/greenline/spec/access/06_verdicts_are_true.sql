-- What is applied again, or said to be released, was decided before; what is applied again has the outcome that it had
-- (relaxed actions keep none); what is early comes before the one before it is decided.
WITH refused AS (
    SELECT DISTINCT run, action, position, sub, digest, verdict,
           instr(action, '~') > 0 AS is_relaxed,
           split_part(action, '/', 1) || '/'
           || CAST(coalesce(CASE WHEN translate(split_part(action, '/', 2), '0123456789', '') = ''
                                 THEN TRY_CAST(split_part(action, '/', 2) AS BIGINT) END, 0) - 1 AS STRING) AS action_before,
           coalesce(CASE WHEN translate(split_part(action, '/', 2), '0123456789', '') = ''
                         THEN TRY_CAST(split_part(action, '/', 2) AS BIGINT) END, 0) AS number
    FROM applied
    WHERE is_kept AND verdict IN ('again', 'released', 'early')
),
decided AS (
    SELECT run, action, min(position) AS position, min(digest) AS digest FROM decision GROUP BY run, action
),
decided_sub AS (
    SELECT d.run, d.action, d.position, d.digest, min(p.sub) AS sub
    FROM decided d
    JOIN decision p ON p.run = d.run AND p.action = d.action AND p.position = d.position
    GROUP BY d.run, d.action, d.position, d.digest
)
SELECT r.run, r.action, r.position, r.sub,
       CASE WHEN d.run IS NULL OR d.position > r.position OR (d.position = r.position AND d.sub >= r.sub)
            THEN 'it is ' || r.verdict || ', and was not decided before'
            ELSE 'its outcome was another when it was decided' END AS because
FROM refused r
LEFT JOIN decided_sub d ON d.run = r.run AND d.action = r.action
WHERE r.verdict IN ('again', 'released')
  AND (d.run IS NULL OR d.position > r.position OR (d.position = r.position AND d.sub >= r.sub)
       OR (r.verdict = 'again' AND NOT r.is_relaxed AND d.digest <> r.digest))
UNION ALL
SELECT r.run, r.action, r.position, r.sub, 'it is early, and ' || r.action_before || ' was decided before'
FROM refused r
LEFT JOIN decided_sub d ON d.run = r.run AND d.action = r.action_before
WHERE r.verdict = 'early'
  AND ((r.number = 1 AND instr(r.action, '@') = 0) OR d.position < r.position OR (d.position = r.position AND d.sub < r.sub))
