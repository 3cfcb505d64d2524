-- Who hands over a CPC is vulnerable to just this attempt: that is the last that its life has said of it (notes I16, I17).
WITH tried AS (
    SELECT life, run, process, incarnation, local_index, kind, position, sub, members,
           max(CASE WHEN kind = 'vulnerable' THEN local_index END)
               OVER (PARTITION BY life ORDER BY local_index) AS vulnerable_at
    FROM step
    WHERE kind IN ('vulnerable', 'cpc')
)
SELECT c.run, c.process, c.incarnation, c.local_index, c.position AS prim, c.sub AS attempt,
       CASE WHEN v.detail IS NULL THEN 'it was never vulnerable'
            ELSE 'it is ' || v.detail || ' of ' || CAST(v.position AS STRING) || '.' || CAST(v.sub AS STRING) || ' ' || v.members
            END AS because
FROM tried c
LEFT JOIN step v ON v.life = c.life AND v.local_index = c.vulnerable_at
WHERE c.kind = 'cpc'
  AND (v.detail IS NULL OR v.detail <> 'valid try' OR v.position <> c.position OR v.sub <> c.sub OR v.members <> c.members)
