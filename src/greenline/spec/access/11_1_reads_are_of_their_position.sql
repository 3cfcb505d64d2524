-- A green read, old or new, shows what the order makes of the object up to its position: the register's value, the
-- counter's sum, the list's length (strict, session and weak queries).
SELECT run, who AS query, object, position, 'it saw ' || value || ', and ' || stands || ' stands there' AS because
FROM look
WHERE sort = 'query' AND how <> 'dirty' AND value <> stands
