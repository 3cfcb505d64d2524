"""Adapters of the database port: what stands behind a replica. SQLite: in a file, and in memory for the simulator.

May do I/O. Imports only the kernel, and the database that it speaks to.

| module              | its idea                                                                          |
|---------------------|-----------------------------------------------------------------------------------|
| `sessions`          | is a request new, a repetition, or to be refused? Pure; the same for any database |
| `session_tables`    | what there is to know of sessions, in tables of the replicated database           |
| `operations`        | what an action may ask for                                                        |
| `procedures`        | what an action may call, by name, in versions                                     |
| `state`             | what bundles do to the replicated state, and what it comes to                     |
| `snapshots`         | that state in chunks, and back                                                    |
| `memory`            | the simulator's adapter, of these: transactions, positions, crashes               |
| `sqlite`            | the product's adapter: SQL on SQLite, in a file                                   |
"""
