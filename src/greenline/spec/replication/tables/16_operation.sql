-- What a client asked for, by the load generator's one clock: an action, or a query. When it was called first; and
-- when, where and with what it first returned green for good: an action at level local or quorum, a strict query from a
-- state that is kept. Who asks again asks for the same: it is bounded by its first call and its first answer.
WITH asked AS (
    SELECT run, message, min(local_index) AS called
    FROM said
    WHERE kind = 'call' AND message <> ''
    GROUP BY run, message
),
answered AS (
    SELECT s.run, s.message, min(s.local_index) AS returned
    FROM said s
    JOIN asked a ON a.run = s.run AND a.message = s.message AND s.local_index > a.called
    LEFT JOIN unsound u ON u.run = s.run AND u.process = s.members AND u.position <= s.position
    WHERE s.kind = 'return'
      AND ((s.is_safe AND NOT s.is_query)
           OR (s.is_query AND s.colour = 'green' AND s.service = 'strict' AND NOT s.is_given_up AND u.run IS NULL))
    GROUP BY s.run, s.message
)
SELECT a.run, a.message AS action, c.is_query, a.called, x.returned,
       split_part(c.detail, ' ', 1) AS verb,
       split_part(c.detail, ' ', 2) AS object,
       split_part(c.detail, ' ', 3) AS argument,
       c.detail AS request,
       r.position, r.sub, r.detail AS answer,
       r.detail = 'conflict' AS is_conflict
FROM asked a
JOIN said c ON c.run = a.run AND c.local_index = a.called
LEFT JOIN answered x ON x.run = a.run AND x.message = a.message
LEFT JOIN said r ON r.run = x.run AND r.local_index = x.returned
