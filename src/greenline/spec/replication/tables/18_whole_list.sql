-- The longest list that anybody saw under a name; of several, the last.
WITH longest AS (SELECT run, list, max(length(answer)) AS size FROM seen_list GROUP BY run, list)
SELECT s.run, s.list, max(s.answer) AS answer
FROM seen_list s
JOIN longest l ON l.run = s.run AND l.list = s.list AND l.size = length(s.answer)
GROUP BY s.run, s.list
