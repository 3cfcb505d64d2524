-- Who joins is a server then, who leaves is none, and nothing else changes; positions rise (Amir & Tutu 5.1).
WITH changed AS (
    SELECT *,
           instr(' ' || members || ' ', ' ' || server || ' ') > 0 AS is_in,
           length(members) - length(replace(members, ' ', '')) + 1 AS size,
           lag(position) OVER life AS position_before,
           lag(members) OVER life AS members_before
    FROM roster
    WINDOW life AS (PARTITION BY life, part ORDER BY local_index)
),
compared AS (
    SELECT *,
           length(members_before) - length(replace(members_before, ' ', '')) + 1 AS size_before,
           CASE WHEN instr(' ' || members_before || ' ', ' ' || server || ' ') > 0 THEN 1 ELSE 0 END AS was_in,
           CASE WHEN is_done AND verb IN ('join', 'leave') THEN verb ELSE 'nothing' END AS effect
    FROM changed
)
SELECT run, process, incarnation, local_index, position, detail,
       CASE WHEN position < position_before THEN 'it follows a change at ' || CAST(position_before AS STRING)
            ELSE 'from there on the servers are ' || members END AS because
FROM compared
WHERE position < position_before
   OR (effect = 'join' AND (NOT is_in OR size <> size_before + 1 - was_in))
   OR (effect = 'leave' AND (is_in OR size <> size_before - was_in))
   OR (effect = 'nothing' AND members <> members_before)
