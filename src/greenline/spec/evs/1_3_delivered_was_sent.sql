-- Specification 1.3. What is delivered in c was sent in reg(c).
SELECT d.run, d.process, d.message, d.conf, 'it was not sent in the regular configuration ' || coalesce(d.family, '(none)') AS because
FROM delivered d
ANTI JOIN sent s ON s.run = d.run AND s.message = d.message AND s.conf = d.family
