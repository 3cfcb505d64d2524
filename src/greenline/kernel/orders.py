"""Orders: what the router asks of its driver, simulated or real. Bytes and plain data; nothing is decided there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId


class Transmit(msgspec.Struct, frozen=True, gc=False):
    """One datagram to each of these."""

    to: tuple[ProcId, ...]
    frame: bytes


class Arm(msgspec.Struct, frozen=True, gc=False):
    """Come back with `fire(layer, timer, generation)` after so many seconds; late is allowed, early is not."""

    layer: int
    timer: Hashable
    generation: int
    after: float


class Disarm(msgspec.Struct, frozen=True, gc=False):
    """Nobody needs this timer any more: if it comes all the same, it is dropped, but an idle node should sleep."""

    layer: int
    timer: Hashable


class Cut(msgspec.Struct, frozen=True, gc=False):
    """A crash tore the last record of the log: cut it off here, before anything is written."""

    at: int


class Write(msgspec.Struct, frozen=True, gc=False):
    """Append a frame to the log."""

    frame: bytes


class Force(msgspec.Struct, frozen=True, gc=False):
    """Make all writes so far durable, then come back with `forced(number)`. One at a time."""

    number: int


class Discard(msgspec.Struct, frozen=True, gc=False):
    """Nobody needs what stands before this place of the log, and what is needed instead is durable: any part may go.

    A place is counted in bytes from where the contents began that this life was booted with, also after a discard.
    """

    before: int


class Ask(msgspec.Struct, frozen=True, gc=False):
    """Put a request to a port outside, then come back with `answered(layer, call, result)`."""

    layer: int
    call: int
    port: str
    request: Any


class Tell(msgspec.Struct, frozen=True, gc=False):
    """An upcall of the topmost core: for the application."""

    payload: Any


class Record(msgspec.Struct, frozen=True, gc=False):
    """A row for the trace."""

    row: Row


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The node stops: every order after this one is void."""

    reason: str


Order = Transmit | Arm | Disarm | Cut | Write | Force | Discard | Ask | Tell | Record | Stop
