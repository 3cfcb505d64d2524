-- Specification 2.2. Sends, deliveries and crashes happen in the configuration that was delivered last in that life.
WITH placed AS (
    SELECT run, process, incarnation, n, kind, conf, message,
           max(CASE WHEN kind IN ('regular', 'transitional') THEN n END) OVER life AS conf_n,
           max(CASE WHEN kind = 'crash' THEN n END) OVER before AS crash_n
    FROM event
    WINDOW life AS (PARTITION BY run, process, incarnation ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
           before AS (PARTITION BY run, process, incarnation ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT p.run, p.process, p.kind, p.message, p.conf,
       CASE WHEN p.crash_n IS NOT NULL THEN 'the process had crashed'
            ELSE 'the process was in ' || coalesce(c.conf, 'no configuration') END AS because
FROM placed p
LEFT JOIN conf_event c ON c.run = p.run AND c.process = p.process AND c.n = p.conf_n
WHERE (p.kind IN ('send', 'deliver') AND (p.conf IS NULL OR p.conf IS DISTINCT FROM c.conf OR p.crash_n IS NOT NULL))
   OR (p.kind = 'crash' AND (p.conf IS DISTINCT FROM c.conf OR p.crash_n IS NOT NULL))
