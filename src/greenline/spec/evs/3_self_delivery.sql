-- Specification 3. A process delivers what it sent, in that configuration or in the transitional one after it,
-- unless it crashes there.
SELECT s.run, s.process, s.message, s.conf, 'it went on to another configuration without it' AS because
FROM sent s
JOIN stay y ON y.run = s.run AND y.process = s.process AND y.incarnation = s.incarnation AND y.family = s.family
ANTI JOIN delivered d ON d.run = s.run AND d.process = s.process AND d.message = s.message AND d.family = s.family
WHERE y.has_left AND NOT y.has_crashed
