-- A message: who sent it by its name, and how much was promised of it when it was generated.
SELECT run, message, split_part(message, ':', 1) AS sender,
       coalesce(min(CASE WHEN kind = 'generate' THEN service END), min(service)) AS service
FROM event
WHERE message IS NOT NULL
GROUP BY run, message
