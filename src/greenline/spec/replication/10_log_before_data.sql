-- A database is never ahead of its log, nor a log of the order: what is opened was recovered, what is committed was
-- durable, what is durable or applied was green; in the same life, not later by its own clock. A snapshot brings a
-- database, then its log, to where it ends.
WITH sofar AS (
    -- Of what has one time, marks come first, then the disk: a router may open a gate before it tells the core.
    SELECT life, local_index, kind, position,
           max(CASE WHEN kind = 'durable' THEN position END) OVER before AS durable,
           max(CASE WHEN kind = 'mark' THEN position END) OVER before AS green,
           max(CASE WHEN kind IN ('restored', 'replaced') THEN position END) OVER before AS snapshot
    FROM step
    WHERE kind IN ('opened', 'commit', 'durable', 'apply', 'restored', 'replaced') OR (kind = 'mark' AND colour = 'green')
    WINDOW before AS (PARTITION BY life
                      ORDER BY time, CASE WHEN kind IN ('mark', 'restored', 'replaced') THEN 0 WHEN kind = 'durable' THEN 1 ELSE 2 END
                      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
allowed AS (
    SELECT s.life, s.local_index, s.kind, s.position, l.run, l.process, l.incarnation,
           greatest(coalesce(l.recovered, 0), l.found, coalesce(s.snapshot, 0),
                    CASE s.kind WHEN 'opened' THEN 0 WHEN 'commit' THEN coalesce(s.durable, 0) ELSE coalesce(s.green, 0) END)
               AS allowed
    FROM sofar s
    JOIN life l ON l.life = s.life
    WHERE s.kind NOT IN ('mark', 'restored', 'replaced')
)
SELECT run, process, incarnation, local_index, kind, position,
       CASE kind WHEN 'opened' THEN 'its log has recovered no more than '
                 WHEN 'commit' THEN 'its log has on disk no more than '
                 ELSE 'green is no more than ' END || CAST(allowed AS STRING) AS because
FROM allowed
WHERE position > allowed
