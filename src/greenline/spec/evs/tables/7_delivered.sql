-- deliver_p(m, c), with the family of c: reg(c) and every transitional configuration that follows it anywhere.
SELECT e.run, e.process, e.incarnation, e.n, e.message, e.conf, c.kind AS conf_kind, c.reg AS family,
       m.sender, m.service
FROM event e
JOIN message m ON m.run = e.run AND m.message = e.message
LEFT JOIN conf c ON c.run = e.run AND c.conf = e.conf
WHERE e.kind = 'deliver'
