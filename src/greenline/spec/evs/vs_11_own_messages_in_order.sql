-- A process delivers its own messages in the order in which it generated them. A basic one promises no order.
SELECT run, process, message, last_message, 'it was generated before ' || last_message AS because
FROM (
    SELECT run, process, message,
           lag(message) OVER (PARTITION BY run, process, incarnation ORDER BY n) AS last_message
    FROM delivered
    WHERE sender = process AND service <> 'basic'
) own
WHERE split_part(message, ':', 2) = split_part(last_message, ':', 2)
  AND CASE WHEN translate(split_part(message, ':', 3), '0123456789', '') = '' THEN TRY_CAST(split_part(message, ':', 3) AS BIGINT) END <= CASE WHEN translate(split_part(last_message, ':', 3), '0123456789', '') = '' THEN TRY_CAST(split_part(last_message, ':', 3) AS BIGINT) END
