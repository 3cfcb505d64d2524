"""Evidence: one row an event, flat, as it is judged later.

The router writes what passes the ports, whoever causes or notices a crash writes that, and a core adds only
witnesses. There is no global clock and no global index: `time` is the process's own clock and proves nothing.
"""

from __future__ import annotations

import msgspec

from greenline.kernel.identities import ProcId

WORLD: ProcId = "*"
"""Who writes what befalls a run as a whole: faults, quiescence. It cannot be a process's name."""

START = "start"
GENERATE = "generate"
SEND = "send"
DELIVER = "deliver"
REGULAR = "regular"
TRANSITIONAL = "transitional"
CRASH = "crash"
HALT = "halt"
QUIET = "quiet"
STUCK = "stuck"
OPENED = "opened"
APPLY = "apply"
COMMIT = "commit"
RESTORED = "restored"
"""What a replica's database did, in the replica's own order. Restored: it has become what a snapshot says; the engine
has the same word for itself, so rules go by the layer, which a core cannot choose."""
CALL = "call"
RETURN = "return"
REFUSED = "refused"
FINAL = "final"
"""What the load generator asked for and was told, by one clock; and what each database comes to in the end."""
GONE = "gone"
"""A process was stopped for good: it has left, or its removal was answered."""
EVIDENCE = frozenset(
    {
        *(START, GENERATE, SEND, DELIVER, REGULAR, TRANSITIONAL, CRASH, HALT, QUIET, STUCK),
        *(OPENED, APPLY, COMMIT, CALL, RETURN, REFUSED, FINAL, GONE),
    }
)
"""Kinds that rules rest on. A core cannot write them."""

DIGEST = "digest"
"""What a core's state comes to: a witness that is kept also where a trace is turned down."""

PHASE = "phase"
BUSY = "busy"
IGNORED = "ignored"
DROPPED = "dropped"
FAULT = "fault"
HEALED = "healed"
PACKET = "packet"
"""Kinds for people: the phase of a core, what was refused and why, faults and their end, single packets."""

IMPOSSIBLE = "impossible: "
"""How the detail of a halt begins when it was our own mistake, and not a disk's."""


class Row(msgspec.Struct, array_like=True, gc=False):
    process: ProcId
    incarnation: int
    local_index: int
    time: float
    kind: str
    layer: str | None = None
    conf: str | None = None
    message: str | None = None
    service: str | None = None
    colour: str | None = None
    position: int | None = None
    sub: int | None = None
    members: str | None = None
    digest: str | None = None
    detail: str | None = None
