-- A message: who sent it by its name, and how much was promised of it when it was generated or delivered.
SELECT run, message, split_part(message, ':', 1) AS sender, min(service) AS service
FROM event
WHERE message IS NOT NULL
GROUP BY run, message
