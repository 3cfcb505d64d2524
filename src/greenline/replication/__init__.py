"""The replication engine: a durable global order over partitions, without acknowledgements per action.

Thesis chapters 2 and 6; Amir & Tutu sections 3 to 5 and appendix A. It uses the group communication port of the kernel,
so it runs on the Ring and on the simulator's adversary alike. What the papers call an action that is
ordered, logged and coloured is a bundle here: what the clients of one server asked for together.

How to read it: `messages`, `replica` (the queue and its colours), `knowledge` and `plan` (pure functions of the State
messages), then `core` and the states: `nonprim`, `exchange_states`, `exchange_actions`, `construct`, `no`, `un`,
`regprim`, `transprim`. Beside the states: `requests`, `outbox`, `applying`, `catching_up`, `discarding`.

Where it departs from the papers is said where it does, with the number of the gap in `docs/replication.md`.
"""
