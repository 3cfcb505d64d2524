-- deliver_p(m, c), with the family of c: reg(c) and every transitional configuration that follows it anywhere.
SELECT e.run, e.process, e.incarnation, e.n, e.message, e.conf, c.kind AS conf_kind, c.reg AS family,
       m.sender, m.service, m.first_sender IS NOT NULL AS is_sent, m.deliveries
FROM event e
JOIN message m ON m.run = e.run AND m.message = e.message
LEFT JOIN conf c ON c.run = e.run AND c.conf = e.conf
WHERE e.kind = 'deliver'
