"""The product's database: SQL on SQLite, in a file, through apsw.

| module        | its idea                                                                                     |
|---------------|----------------------------------------------------------------------------------------------|
| `adapter`     | the port: who answers what                                                                   |
| `writer`      | the thread that applies and commits                                                          |
| `bundles`     | what bundles do to the state, and what their actions come to                                 |
| `deciding`    | the actions of one bundle, in order: whose turn it is, what to execute together              |
| `sessions`    | requests are decided once: what is known of sessions, in memory and in a table               |
| `statements`  | one action's statements: together or not at all, and what they come to                       |
| `runs`        | equal statements of consecutive actions, executed together                                   |
| `forms`       | what is known of a statement from its text                                                   |
| `schema`      | what the schema says that is asked for again and again                                       |
| `failures`    | what a client is told of an error                                                            |
| `opening`     | is what is on the disk ours, and whole?                                                      |
| `connection`  | a connection with all that makes SQL the same everywhere                                     |
| `determinism` | time, chance and counters come from the action                                               |
| `permissions` | what a client's statement may do                                                             |
| `tables`      | the tables that are ours                                                                     |
| `limits`      | how much is too much                                                                         |
| `broken`      | failures that are nobody's outcome                                                           |
| `beside`      | everybody who works on the file beside the writer                                            |
| `readers`     | queries on what is committed                                                                 |
| `overlay`     | dirty queries: what is red, on top of what is committed                                      |
| `pages`       | a database laid over another, page by page                                                   |
| `wal`         | which frame of the log holds which page                                                      |
| `checkpoints` | from the log to the main file; what is durable                                               |
| `snapshots`   | the state for others, and another's in the place of ours                                     |
| `images`      | a copy of the state, in chunks                                                               |
| `staging`     | chunks of another's, kept aside                                                              |
| `assembling`  | from chunks a database again                                                                 |
| `basis`       | what came with a snapshot                                                                    |
| `holding`     | letting go of the file while it is replaced                                                  |
| `digests`     | digests of copies, in a thread of their own                                                  |
| `content`     | what a state comes to, whatever its pages look like                                          |
"""
