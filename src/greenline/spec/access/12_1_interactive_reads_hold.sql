-- An interactive action is done only if what it had read stands just before its place, and has a conflict only if it
-- does not.
SELECT run, who AS action, object, position, sub,
       'it had read ' || value || ', it is ' || how || ', and ' || stands || ' stands there' AS because
FROM look
WHERE sort = 'interactive' AND ((how = 'done' AND value <> stands) OR (how = 'conflict' AND value = stands))
