-- The counters of the regular configurations of a process rise strictly, also across its lives.
SELECT run, process, conf, last_conf, 'its counter does not rise' AS because
FROM (
    SELECT run, process, conf, lag(conf) OVER (PARTITION BY run, process ORDER BY n) AS last_conf
    FROM conf_event
    WHERE kind = 'regular'
) followed
WHERE CASE WHEN translate(split_part(conf, '.', 2), '0123456789', '') = '' THEN TRY_CAST(split_part(conf, '.', 2) AS BIGINT) END <= CASE WHEN translate(split_part(last_conf, '.', 2), '0123456789', '') = '' THEN TRY_CAST(split_part(last_conf, '.', 2) AS BIGINT) END
