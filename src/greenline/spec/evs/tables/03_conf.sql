-- A configuration: its kind, its members, and reg(c): itself, or the regular one directly before it.
-- Where processes disagree, one answer is taken and rule vs.2 or vs.5 reports the rest.
SELECT run, conf, min(kind) AS kind, min(members) AS members,
       min(CASE WHEN kind = 'regular' THEN conf WHEN prev_kind = 'regular' THEN prev_conf END) AS reg
FROM conf_event
GROUP BY run, conf
