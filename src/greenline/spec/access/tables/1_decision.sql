-- An action is decided: where, how, and what it asked for. Asked of what databases keep.
SELECT DISTINCT a.run, a.action, a.position, a.sub, a.digest, a.verdict,
       instr(a.action, '~') > 0 AS is_relaxed,
       split_part(replace(a.action, '~', '/'), '/', 1) AS session,
       coalesce(CASE WHEN translate(split_part(replace(a.action, '~', '/'), '/', 2), '0123456789', '') = ''
                     THEN TRY_CAST(split_part(replace(a.action, '~', '/'), '/', 2) AS BIGINT) END, 0) AS number,
       o.verb, o.object, o.argument, o.request
FROM applied a
LEFT JOIN operation o ON o.run = a.run AND o.action = a.action
WHERE a.is_kept AND a.is_decided
