-- A list is answered under its name, and who appends to it sees its own value last.
SELECT run, list, action, 'it was answered ' || answer AS because
FROM seen_list
WHERE substr(answer || ' ', 1, length(list) + 1) <> list || ' '
   OR (verb = 'append' AND right(answer, length(argument) + 1) <> ' ' || argument)
