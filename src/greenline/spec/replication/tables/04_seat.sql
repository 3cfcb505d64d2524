-- Who is a server: since when (0: a founder; else where it first joined), until when (where it first left), whether
-- what it leaves behind is void, and the last place at which it is said to have joined. A founder is who has a life and
-- never came as a newcomer.
WITH arrived AS (
    SELECT run, server, min(position) AS since, max(position) AS last_since
    FROM roster
    WHERE verb = 'join' AND is_done
    GROUP BY run, server
),
departed AS (
    SELECT run, server, min(position) AS until, max(CASE WHEN is_void THEN 1 ELSE 0 END) AS is_void
    FROM roster
    WHERE verb = 'leave' AND is_done
    GROUP BY run, server
),
newcomer AS (SELECT DISTINCT run, process AS server FROM step WHERE kind = 'newcomer'),
founder AS (
    SELECT DISTINCT l.run, l.process AS server
    FROM life l
    ANTI JOIN newcomer n ON n.run = l.run AND n.server = l.process
    ANTI JOIN arrived a ON a.run = l.run AND a.server = l.process
),
seated AS (
    SELECT run, server, since, last_since FROM arrived
    UNION ALL
    SELECT run, server, 0, 0 FROM founder
)
SELECT s.run, s.server, s.since, s.last_since,
       coalesce(d.until, 4000000000000000000) AS until,
       coalesce(d.is_void, 0) = 1 AS is_void
FROM seated s
LEFT JOIN departed d ON d.run = s.run AND d.server = s.server
