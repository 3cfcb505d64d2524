-- A transitional configuration between c and d has exactly those who go from c to d: its members are members of both,
-- and who installs d came from c if and only if it is a member.
WITH route AS (
    SELECT DISTINCT run, prev_conf AS old, conf AS trans, next_conf AS new
    FROM conf_event
    WHERE kind = 'transitional' AND next_conf IS NOT NULL AND prev_conf IS NOT NULL
),
came AS (
    SELECT run, process, next_conf AS new, prev_conf AS old
    FROM conf_event
    WHERE kind = 'transitional' AND next_conf IS NOT NULL
)
SELECT r.run, m.process, r.trans AS conf, 'it is a member of it, but not of the configurations on both sides' AS because
FROM route r
JOIN member m ON m.run = r.run AND m.conf = r.trans
LEFT JOIN member o ON o.run = r.run AND o.conf = r.old AND o.process = m.process
LEFT JOIN member w ON w.run = r.run AND w.conf = r.new AND w.process = m.process
WHERE o.process IS NULL OR w.process IS NULL
UNION ALL
SELECT r.run, c.process, r.trans AS conf,
       CASE WHEN m.process IS NULL THEN 'it went the same way, but is no member' ELSE 'it is a member, but came another way' END AS because
FROM route r
JOIN came c ON c.run = r.run AND c.new = r.new
LEFT JOIN member m ON m.run = r.run AND m.conf = r.trans AND m.process = c.process
WHERE (m.process IS NULL) = (c.old IS NOT DISTINCT FROM r.old)
