"""Actions: what single clients ask for, packed at the edge and opened at the database. In between they are bytes.

A client has a session and numbers its requests in it from 1. Who it asks, and how often, does not matter: a request is
decided once, where the first bundle that carries it is ordered, and whoever asks again is told the same. Requests of a
session are decided in the order of their numbers. Relaxed ones (commutative, or with a timestamp of their
own) have numbers of their own, and are decided in any order.
"""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import blake2b

import msgspec

from greenline.kernel.codec import Garbled

DIGEST_BYTES = 16
WINDOW = 256
"""A session may have so many requests of which its client has not said that it knows their outcomes."""


class Read(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an interactive action has read before it was asked for; at its place in the order it must read the same."""

    request: bytes
    digest: bytes


class Action(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One request of one client: its identity, and what the database is asked to do."""

    session: str
    number: int
    body: bytes
    received: int = 0
    """The client has the outcomes of its requests up to this number: they need not be kept for it."""
    is_relaxed: bool = False
    reads: tuple[Read, ...] = ()

    def __str__(self) -> str:
        return f"{self.session}{'~' if self.is_relaxed else '/'}{self.number}"


class Verdict(StrEnum):
    DONE = "done"
    FAILED = "failed"
    """It broke a constraint, or could not be understood: nothing was changed."""
    CONFLICT = "conflict"
    """What it had read has changed since: nothing was changed."""
    EARLY = "early"
    """Not decided: requests of its session before it are not. Ask for those first. Or the order has not reached the
    position that its session's name tells."""
    CROWDED = "crowded"
    """Not decided: too many outcomes are kept for its session already. Say what was received."""
    EXPIRED = "expired"
    """Nothing is done: its session is over, and what was decided in it is forgotten. It may have been, long ago."""
    RELEASED = "released"
    """It was decided long ago; the client has said that it knows how, so that the outcome is gone."""
    UNKNOWN = "unknown"
    """Only to who asks for an outcome: it is not decided."""


DECIDED = frozenset({Verdict.DONE, Verdict.FAILED, Verdict.CONFLICT})


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    verdict: Verdict
    value: bytes = b""
    position: int = 0
    """Where it was decided; of what is asked again, the first time."""
    sub: int = 0
    is_again: bool = False
    """It was decided before: this is what was kept."""
    is_whole: bool = True
    """False: `value` was too long to be kept, only the verdict was."""


class OutcomeOf(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a request? It changes nothing, also not what may still become of it."""

    session: str
    number: int
    is_relaxed: bool = False


def digest_of(rows: bytes) -> bytes:
    """What an answer comes to: what a client presents as having been read."""
    return blake2b(rows, digest_size=DIGEST_BYTES).digest()


def born_at(session: str) -> int:
    """The green position that its server knew when a session was named: `c7@1200`. An old one may be over by now."""
    _, _, born = session.partition("@")
    return int(born) if re.fullmatch(r"[0-9]{1,18}", born) else 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Action, ...])


def pack(actions: tuple[Action, ...]) -> bytes:
    return _ENCODER.encode(actions)


def unpack(packed: bytes) -> tuple[Action, ...]:
    try:
        return _DECODER.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise Garbled(f"these are no actions: {error}") from None


def declared(packed: bytes) -> int:
    """How many actions these say they are, by their first bytes; 0 if they are none. They may still be garbled."""
    first = packed[0] if packed else 0
    if first & 0xF0 == 0x90:
        return first & 0x0F
    size = {0xDC: 2, 0xDD: 4}.get(first, 0)
    count = int.from_bytes(packed[1 : 1 + size])
    return count if count <= len(packed) else 0


def opened(chunks: tuple[bytes, ...]) -> list[Action | None]:
    """The actions of a bundle; None for each of a chunk that cannot be opened."""
    actions: list[Action | None] = []
    for chunk in chunks:
        try:
            actions.extend(unpack(chunk))
        except Garbled:
            actions.extend([None] * declared(chunk))
    return actions
