-- deliver_conf_p(c), with the configurations before and after it in the same life.
SELECT run, process, incarnation, n, conf, kind, members,
       lag(conf) OVER life AS prev_conf,
       lag(kind) OVER life AS prev_kind,
       lead(conf) OVER life AS next_conf,
       lead(kind) OVER life AS next_kind,
       lead(n) OVER life AS next_n
FROM event
WHERE kind IN ('regular', 'transitional')
WINDOW life AS (PARTITION BY run, process, incarnation ORDER BY n)
