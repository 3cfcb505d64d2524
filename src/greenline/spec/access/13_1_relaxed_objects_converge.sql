-- In the end every counter is the sum of what was added to it, each once, and every timestamped register holds what was
-- put last by its timestamp, session and number.
SELECT run, who AS process, object, position, 'it is ' || value || ', and comes to ' || stands AS because
FROM look
WHERE sort = 'final' AND value <> stands
