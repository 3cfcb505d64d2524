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
)
SELECT DISTINCT l.run, l.process, l.message, l.conf,
       'it delivered ' || after.message || ' without it, though ' || witness.process || ' delivered it before that' AS because
FROM lacking l
JOIN agreed witness ON witness.run = l.run AND witness.message = l.message AND witness.family = l.family
JOIN agreed after
  ON after.run = l.run AND after.process = witness.process AND after.family = l.family AND after.n > witness.n
JOIN agreed mine
  ON mine.run = l.run AND mine.process = l.process AND mine.conf = l.conf AND mine.message = after.message
