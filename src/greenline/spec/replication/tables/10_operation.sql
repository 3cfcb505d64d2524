-- What a client asked for, by the load generator's one clock: when it was called first, how often, how often refused; and
-- when, where and with what it returned green so that its place is safe (level local or quorum).
WITH asked AS (
    SELECT run, message, min(local_index) AS called, count(*) AS calls
    FROM said
    WHERE kind = 'call' AND message <> ''
    GROUP BY run, message
),
answered AS (
    SELECT s.run, s.message,
           count(CASE WHEN s.kind = 'refused' THEN 1 END) AS refusals,
           min(CASE WHEN s.is_safe AND s.local_index > a.called THEN s.local_index END) AS returned
    FROM said s
    JOIN asked a ON a.run = s.run AND a.message = s.message
    WHERE s.kind IN ('return', 'refused')
    GROUP BY s.run, s.message
)
SELECT a.run, a.message AS action, a.called, a.calls, coalesce(x.refusals, 0) AS refusals, x.returned,
       c.members AS asked,
       split_part(c.detail, ' ', 1) AS verb,
       split_part(c.detail, ' ', 2) AS object,
       split_part(c.detail, ' ', 3) AS argument,
       r.position, r.sub, r.detail AS answer
FROM asked a
JOIN said c ON c.run = a.run AND c.local_index = a.called
LEFT JOIN answered x ON x.run = a.run AND x.message = a.message
LEFT JOIN said r ON r.run = x.run AND r.local_index = x.returned
