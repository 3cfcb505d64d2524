-- Everything that a client asked to append, returned or not, with its place in the longest list that anybody saw.
WITH asked AS (
    SELECT o.run, o.action, o.object AS list, o.argument, o.called,
           substr(w.answer || ' ', 1, instr(w.answer || ' ', ' ' || o.argument || ' ')) AS upto
    FROM operation o
    LEFT JOIN whole_list w ON w.run = o.run AND w.list = o.object
    WHERE o.verb = 'append'
)
SELECT run, action, list, argument, called,
       CASE WHEN length(upto) > 0 THEN length(upto) - length(replace(upto, ' ', '')) END AS place
FROM asked
