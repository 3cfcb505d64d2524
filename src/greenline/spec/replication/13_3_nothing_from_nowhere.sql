-- Every value in a list was asked to be appended to it, and is in it once.
WITH known AS (SELECT run, list, count(DISTINCT argument) AS items FROM append WHERE place IS NOT NULL GROUP BY run, list)
SELECT w.run, w.list, w.answer, 'of its values, ' || CAST(coalesce(k.items, 0) AS STRING) || ' were appended' AS because
FROM whole_list w
LEFT JOIN known k ON k.run = w.run AND k.list = w.list
WHERE coalesce(k.items, 0) <> length(w.answer) - length(replace(w.answer, ' ', ''))
