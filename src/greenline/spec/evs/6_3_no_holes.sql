-- Specification 6.3. If p delivers m and then m', and q delivers m' in a configuration that has the sender of m, then q
-- delivers m. Asked of the services agreed and safe. By logical time only few pairs are left to look at closely.
WITH agreed AS (
    SELECT d.run, d.process, d.n, d.message, d.sender, d.conf, d.family, c.ord
    FROM delivered d
    JOIN certificate c ON c.run = d.run AND c.process = d.process AND c.n = d.n
    WHERE d.service IN ('agreed', 'safe') AND d.family IS NOT NULL
),
placed AS (
    SELECT run, family, message, sender, min(ord) AS first_ord, max(ord) AS last_ord
    FROM agreed
    GROUP BY run, family, message, sender
),
reach AS (
    SELECT a.run, a.process, a.conf, a.family, max(p.last_ord) AS ord
    FROM agreed a
    JOIN placed p ON p.run = a.run AND p.family = a.family AND p.message = a.message
    GROUP BY a.run, a.process, a.conf, a.family
),
lacking AS (
    SELECT r.run, r.process, r.conf, r.family, p.message
    FROM reach r
    JOIN placed p ON p.run = r.run AND p.family = r.family AND (p.first_ord < r.ord OR r.ord IS NULL)
    JOIN member m ON m.run = r.run AND m.conf = r.conf AND m.process = p.sender
    JOIN sent s ON s.run = p.run AND s.message = p.message AND s.conf = p.family AND s.process = p.sender
    ANTI JOIN delivered d
      ON d.run = r.run AND d.process = r.process AND d.message = p.message AND d.family = r.family
),
wanting AS (SELECT DISTINCT run, process, conf, family FROM lacking),
-- How far into what q delivered each other process got: the last message that both have.
common AS (
    SELECT w.run, w.process, w.conf, other.process AS witness, max(other.n) AS n
    FROM wanting w
    JOIN agreed mine ON mine.run = w.run AND mine.process = w.process AND mine.conf = w.conf
    JOIN agreed other ON other.run = mine.run AND other.message = mine.message AND other.family = mine.family
    GROUP BY w.run, w.process, w.conf, other.process
)
SELECT l.run, l.process, l.message, l.conf,
       'it delivered what comes after it, as ' || min(a.process) || ' did that delivered it' AS because
FROM lacking l
JOIN agreed a ON a.run = l.run AND a.message = l.message AND a.family = l.family
JOIN common c ON c.run = l.run AND c.process = l.process AND c.conf = l.conf AND c.witness = a.process
WHERE a.n < c.n
GROUP BY l.run, l.process, l.message, l.conf
