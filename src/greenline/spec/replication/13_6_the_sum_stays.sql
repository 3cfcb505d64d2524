-- Transfers move money and make none: every total that clients were told is the same.
SELECT run, min(answer) AS one, max(answer) AS other, 'two totals were told' AS because
FROM operation
WHERE verb = 'total' AND returned IS NOT NULL
GROUP BY run
HAVING count(DISTINCT answer) > 1
