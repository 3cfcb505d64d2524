-- A life begins with its start; nothing follows its crash; a later life begins only after the crash of this one.
WITH life AS (
    SELECT run, process, incarnation,
           min(CASE WHEN kind = 'start' THEN n END) AS started,
           count(CASE WHEN kind = 'start' THEN 1 END) AS starts,
           min(CASE WHEN kind = 'crash' THEN n END) AS crashed,
           min(n) AS first_n,
           max(n) AS last_n
    FROM event
    GROUP BY run, process, incarnation
),
lives AS (
    SELECT *, lead(incarnation) OVER (PARTITION BY run, process ORDER BY incarnation) AS next_life FROM life
)
SELECT run, process, incarnation,
       CASE WHEN started IS NULL OR starts <> 1 OR started <> first_n THEN 'it does not begin with its one start'
            WHEN crashed IS NOT NULL AND crashed <> last_n THEN 'something follows its crash'
            ELSE 'another life follows, but it never crashed' END AS because
FROM lives
WHERE started IS NULL OR starts <> 1 OR started <> first_n
   OR (crashed IS NOT NULL AND crashed <> last_n)
   OR (crashed IS NULL AND next_life IS NOT NULL)
