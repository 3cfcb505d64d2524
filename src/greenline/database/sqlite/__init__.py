"""The product's database: SQL on SQLite, in a file, through apsw.

| module        | its idea                                                                                     |
|---------------|----------------------------------------------------------------------------------------------|
| `adapter`     | the port: who answers what                                                                   |
| `writer`      | the thread that applies and commits                                                          |
| `bundles`     | what bundles do to the state, and what their actions come to                                 |
| `sessions`    | requests are decided once: what is known of sessions, in memory and in a table               |
| `statements`  | one action's statements: together or not at all, and what they come to                       |
| `runs`        | equal statements of consecutive actions, executed together                                   |
| `connection`  | a connection with all that makes SQL the same everywhere                                     |
| `determinism` | time, chance and counters come from the action                                               |
| `permissions` | what a client's statement may do                                                             |
| `tables`      | the tables that are ours                                                                     |
| `limits`      | how much is too much                                                                         |
| `broken`      | failures that are nobody's outcome                                                           |
"""
