-- What the order makes of each object: every action that was done to it, the how manieth, and what stands there from
-- then on (of a list: how many values it has). Of two puts at one time the greater session and number are the later.
WITH done AS (
    SELECT DISTINCT run, object, position, sub, action, argument, verb,
           CASE WHEN verb = 'add' AND translate(argument, '0123456789', '') = ''
                THEN coalesce(TRY_CAST(argument AS BIGINT), 0) ELSE 0 END AS amount,
           lpad(argument, 15, '0') || ' ' || session || ' ' || lpad(CAST(number AS STRING), 15, '0') || ' '
           || lpad(split_part(request, ' ', 4), 15, '0') AS time_put
    FROM decision
    WHERE verdict = 'done' AND verb IN ('append', 'write', 'add', 'put')
),
numbered AS (
    SELECT run, object, position, sub, argument, verb,
           row_number() OVER places AS nth,
           sum(CAST(amount AS DECIMAL(38, 0))) OVER places AS total,
           max(time_put) OVER places AS last_put
    FROM done
    WINDOW places AS (PARTITION BY run, object ORDER BY position, sub, action ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT run, object, position, sub, argument, nth,
       CASE verb WHEN 'append' THEN CAST(nth AS STRING)
                 WHEN 'write' THEN argument
                 WHEN 'add' THEN CAST(total AS STRING)
                 ELSE CAST(coalesce(CASE WHEN translate(split_part(last_put, ' ', 4), '0123456789', '') = ''
                                         THEN TRY_CAST(split_part(last_put, ' ', 4) AS BIGINT) END, 0) AS STRING)
                 END AS stands
FROM numbered
