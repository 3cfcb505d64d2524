"""Effects: what a core asks of the world. Plain data, carried out in order by the router and its driver.

`gate` names the barrier that an output depends on. The router holds the output until that barrier is
durable, and drops it if the core withdraws the gate first. The network effect is called `Broadcast`, so
that `Multicast` can be the group communication port's word alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from greenline.kernel.events import Downcall, Upcall
from greenline.kernel.identities import ProcId

__all__ = [
    "Append",
    "Barrier",
    "Broadcast",
    "Call",
    "CancelTimer",
    "Checkpoint",
    "Downcall",
    "Effect",
    "Halt",
    "Ignored",
    "Send",
    "SetTimer",
    "Trace",
    "Upcall",
    "Withdraw",
]


class Send(msgspec.Struct, frozen=True, gc=False):
    to: ProcId
    message: Any
    gate: int | None = None


class Broadcast(msgspec.Struct, frozen=True, gc=False):
    """To everybody named, or to every configured peer, but not to these; never to ourselves."""

    message: Any
    to: tuple[ProcId, ...] | None = None
    gate: int | None = None
    but: tuple[ProcId, ...] = ()


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Arm, or arm anew: a timer has one generation at a time."""

    timer: Hashable
    after: float


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    timer: Hashable


class Append(msgspec.Struct, frozen=True, gc=False):
    """A record to the node's log. Nothing is promised of it until a barrier after it is durable."""

    record: Any


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """From here on, what this core has on disk is exactly these records: what it appended before is void.

    Nothing is promised until a barrier after it is durable. A crash before that leaves the old records or the new ones,
    never a mixture.
    """

    records: tuple[Any, ...]


class Barrier(msgspec.Struct, frozen=True, gc=False):
    """Force all that was appended so far. Tickets rise strictly within a life."""

    ticket: int


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Drop the outputs that still wait behind this gate; the barrier itself completes all the same."""

    gate: int


class Call(msgspec.Struct, frozen=True, gc=False):
    """Ask a port outside (the database, the log) for what takes time; `Answered(call, ...)` comes back."""

    call: int
    port: str
    request: Any
    gate: int | None = None


class Trace(msgspec.Struct, frozen=True, gc=False):
    """What the core wants seen: a witness, not evidence, so the kinds of evidence are refused here."""

    kind: str
    detail: str | None = None
    message: object = None
    """A message, or whatever else has a name."""
    members: tuple[ProcId, ...] | None = None
    colour: str | None = None
    position: int | None = None
    sub: int | None = None
    digest: str | None = None


class Ignored(msgspec.Struct, frozen=True, gc=False):
    """An event that was refused by name: counted, traced, and a test can ask for it."""

    reason: str


class Halt(msgspec.Struct, frozen=True, gc=False):
    """Stop this node rather than guess."""

    reason: str


Effect = (
    Send
    | Broadcast
    | SetTimer
    | CancelTimer
    | Append
    | Checkpoint
    | Barrier
    | Withdraw
    | Call
    | Downcall
    | Upcall
    | Trace
    | Ignored
    | Halt
)
