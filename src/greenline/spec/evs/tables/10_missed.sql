-- What a process has missed of its family: sent there by a member of a configuration in which it delivered something,
-- delivered there by somebody, and not by it. Asked of the services agreed and safe. Mostly there is little of it.
WITH agreed AS (
    SELECT run, process, message, sender, conf, family
    FROM delivered
    WHERE service IN ('agreed', 'safe') AND family IS NOT NULL
),
owed AS (
    SELECT DISTINCT a.run, a.family, a.message, a.sender
    FROM agreed a
    SEMI JOIN sent s ON s.run = a.run AND s.message = a.message AND s.conf = a.family AND s.process = a.sender
),
present AS (SELECT DISTINCT run, process, conf, family FROM agreed)
SELECT p.run, p.process, p.conf, p.family, o.message
FROM present p
JOIN owed o ON o.run = p.run AND o.family = p.family
JOIN member m ON m.run = p.run AND m.conf = p.conf AND m.process = o.sender
ANTI JOIN delivered d ON d.run = p.run AND d.process = p.process AND d.message = o.message AND d.family = p.family
