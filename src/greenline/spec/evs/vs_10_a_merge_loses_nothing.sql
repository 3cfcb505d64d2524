-- If nobody is left behind, nothing is delivered in the transitional configuration.
SELECT d.run, d.process, d.message, d.conf, 'nobody left ' || d.family || ', so it should have been delivered there' AS because
FROM delivered d
JOIN conf t ON t.run = d.run AND t.conf = d.conf
JOIN conf c ON c.run = d.run AND c.conf = d.family
WHERE d.conf_kind = 'transitional' AND t.members = c.members
