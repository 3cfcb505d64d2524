-- Specification 5. Who delivers a message has delivered before it, in the same family, what was causally before it:
-- the sender's previous message in that configuration, and what the sender had delivered there since.
-- By induction direct causes are enough. A basic message neither needs nor carries causality.
WITH acts AS (
    SELECT run, process, n, conf, message, 'send' AS kind FROM sent WHERE conf_kind = 'regular' AND service <> 'basic'
    UNION ALL
    SELECT run, process, n, conf, message, 'deliver' AS kind
    FROM delivered
    WHERE conf_kind = 'regular' AND service <> 'basic'
),
placed AS (
    SELECT run, process, n, conf, message, kind,
           min(CASE WHEN kind = 'send' THEN n END) OVER (
               PARTITION BY run, process, conf ORDER BY n DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS next_send_n
    FROM acts
),
cause AS (
    SELECT p.run, p.conf, p.message AS cause, s.message AS effect
    FROM placed p
    JOIN acts s ON s.run = p.run AND s.process = p.process AND s.n = p.next_send_n AND s.kind = 'send'
    SEMI JOIN sent o ON o.run = p.run AND o.message = p.message AND o.conf = p.conf
    WHERE p.message <> s.message
),
first_delivery AS (
    SELECT run, process, message, family, min(n) AS n FROM delivered GROUP BY run, process, message, family
)
SELECT e.run, e.process, e.message, c.cause, 'it was delivered without ' || c.cause || ', which is causally before it' AS because
FROM cause c
JOIN first_delivery e ON e.run = c.run AND e.message = c.effect AND e.family = c.conf
ANTI JOIN delivered d
  ON d.run = e.run AND d.process = e.process AND d.message = c.cause AND d.family = e.family AND d.n <= e.n
