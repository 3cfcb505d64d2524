-- A list that is read has at each place the value that the order put there, up to its position; a dirty one may go on
-- from there, if something is red.
SELECT DISTINCT q.run, q.query, q.object, q.position,
       'it saw ' || q.answer || ', and number ' || CAST(e.nth AS STRING) || ' is ' || e.argument AS because
FROM look l
JOIN query q ON q.run = l.run AND q.query = l.who AND q.returned = l.local_index
JOIN effect e ON e.run = l.run AND e.object = l.object AND e.nth <= l.upto
WHERE l.sort = 'query' AND l.object LIKE 'l%' AND split_part(q.answer, ' ', e.nth + 1) <> e.argument
UNION ALL
SELECT q.run, q.query, q.object, q.position, 'nothing is red, and it saw ' || q.answer
FROM look l
JOIN query q ON q.run = l.run AND q.query = l.who AND q.returned = l.local_index
WHERE l.sort = 'query' AND l.how = 'dirty' AND q.reds = 0 AND l.value <> l.stands
