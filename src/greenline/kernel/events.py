"""Events: what befalls a core. One at a time; the effects of one are carried out before the next."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from greenline.kernel.identities import ProcId


class Start(msgspec.Struct, frozen=True, gc=False):
    """A life begins. The incarnation is durable already; `records` is what the disk had of this core."""

    me: ProcId
    incarnation: int
    records: tuple[Any, ...] = ()


class Received(msgspec.Struct, frozen=True, gc=False):
    """A peer's message, decoded. It may be anything that the message types allow: serve it or ignore it by name."""

    message: Any
    sender: ProcId


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """A timer that is still armed as it was set. The router has dropped what was cancelled or set again."""

    timer: Hashable
    generation: int


class Durable(msgspec.Struct, frozen=True, gc=False):
    """All that was appended before `Barrier(ticket)` is on disk. What was gated on it has left already."""

    ticket: int


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a `Call`, from the port that it went to."""

    call: int
    result: Any


class Downcall(msgspec.Struct, frozen=True, gc=False):
    """The core above, or the application, asks for something. As an effect: we ask the core below."""

    payload: Any
    gate: int | None = None


class Upcall(msgspec.Struct, frozen=True, gc=False):
    """The core below tells something. As an effect: we tell the core above, or the application."""

    payload: Any
    gate: int | None = None


Event = Start | Received | TimerFired | Durable | Answered | Downcall | Upcall
