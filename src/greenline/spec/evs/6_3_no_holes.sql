-- Specification 6.3. If p delivers m and then m', and q delivers m' in a configuration that has the sender of m, then q
-- delivers m. Asked of the services agreed and safe. By logical time only few pairs are left to look at closely.
WITH agreed AS (
    SELECT run, process, n, message, conf, family, ord
    FROM certificate
    WHERE kind = 'deliver' AND service IN ('agreed', 'safe') AND family IS NOT NULL
),
placed AS (
    SELECT a.run, a.family, a.message, min(a.ord) AS first_ord, max(a.ord) AS last_ord
    FROM agreed a
    SEMI JOIN missed w ON w.run = a.run AND w.family = a.family
    GROUP BY a.run, a.family, a.message
),
reach AS (
    SELECT a.run, a.process, a.conf, max(p.last_ord) AS ord
    FROM agreed a
    SEMI JOIN missed w ON w.run = a.run AND w.process = a.process AND w.conf = a.conf
    JOIN placed p ON p.run = a.run AND p.family = a.family AND p.message = a.message
    GROUP BY a.run, a.process, a.conf
),
lacking AS (
    SELECT w.run, w.process, w.conf, w.family, w.message
    FROM missed w
    JOIN reach r ON r.run = w.run AND r.process = w.process AND r.conf = w.conf
    JOIN placed p ON p.run = w.run AND p.family = w.family AND p.message = w.message
    WHERE p.first_ord < r.ord OR r.ord IS NULL
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
