-- send_p(m, c).
SELECT e.run, e.process, e.incarnation, e.n, e.message, e.conf, c.kind AS conf_kind, c.reg AS family, m.service,
       e.process = m.first_sender AS is_first, m.deliveries
FROM event e
JOIN message m ON m.run = e.run AND m.message = e.message
LEFT JOIN conf c ON c.run = e.run AND c.conf = e.conf
WHERE e.kind = 'send'
