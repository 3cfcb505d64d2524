-- Once a run has settled, a counter holds at least what was accepted for it and not refused afterwards, and at most
-- what was asked for (judged from what clients asked and were told).
WITH excused AS (
    SELECT run, server FROM given_up
    UNION
    SELECT run, server FROM seat WHERE is_void
),
accepted AS (
    SELECT DISTINCT s.run, s.message AS action
    FROM said s
    ANTI JOIN excused x ON x.run = s.run AND x.server = s.members
    ANTI JOIN buried b ON b.run = s.run AND b.server = s.members AND s.colour = 'red'
    WHERE s.kind = 'return' AND s.message <> ''
),
refused AS (
    SELECT DISTINCT run, action FROM applied
    WHERE is_kept AND verdict IN ('failed', 'conflict', 'early', 'crowded', 'expired')
),
added AS (
    SELECT run, object, action,
           CAST(coalesce(CASE WHEN translate(argument, '0123456789', '') = ''
                              THEN TRY_CAST(argument AS BIGINT) END, 0) AS DECIMAL(38, 0)) AS amount
    FROM operation
    WHERE verb = 'add'
),
bounds AS (
    SELECT o.run, o.object, sum(o.amount) AS most,
           sum(CASE WHEN a.run IS NOT NULL AND r.run IS NULL THEN o.amount ELSE 0 END) AS least
    FROM added o
    LEFT JOIN accepted a ON a.run = o.run AND a.action = o.action
    LEFT JOIN refused r ON r.run = o.run AND r.action = o.action
    GROUP BY o.run, o.object
)
SELECT l.run, l.who AS process, l.object,
       'it is ' || l.value || ', and between ' || CAST(b.least AS STRING) || ' and ' || CAST(b.most AS STRING) || ' were added'
       AS because
FROM look l
JOIN bounds b ON b.run = l.run AND b.object = l.object
JOIN settled s ON s.run = l.run AND s.process = l.who AND s.is_server
WHERE l.sort = 'final' AND NOT coalesce(CASE WHEN translate(l.value, '0123456789', '') = ''
                                             THEN TRY_CAST(l.value AS BIGINT) END BETWEEN b.least AND b.most, FALSE)
