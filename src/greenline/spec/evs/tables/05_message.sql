-- A message: who sent it by its name, how much was promised of it when it was generated, the first process that did
-- send it, and how often it was delivered, by all together.
SELECT run, message, split_part(message, ':', 1) AS sender,
       coalesce(min(CASE WHEN kind = 'generate' THEN service END), min(service)) AS service,
       min(CASE WHEN kind = 'send' THEN process END) AS first_sender,
       count(CASE WHEN kind = 'deliver' THEN 1 END) AS deliveries
FROM event
WHERE message IS NOT NULL
GROUP BY run, message
