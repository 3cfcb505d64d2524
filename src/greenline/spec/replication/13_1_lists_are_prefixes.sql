-- Of any two lists that clients saw under one name, one is a prefix of the other.
SELECT run, list, action, 'another saw ' || before AS because
FROM (
    SELECT run, list, action, answer, lag(answer) OVER (PARTITION BY run, list ORDER BY length(answer), answer, action) AS before
    FROM seen_list
) seen
WHERE substr(answer || ' ', 1, length(before) + 1) <> before || ' '
