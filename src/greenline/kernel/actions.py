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


class Series(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive requests of one session, whose bodies begin alike: what a busy client sends, said once.

    It is smaller, and whoever looks at all of them looks at it once.
    """

    session: str
    first: int
    """The number of the first of them."""
    received: int
    head: bytes
    """How all their bodies begin."""
    tails: tuple[bytes, ...]
    """How each goes on."""

    @property
    def actions(self) -> tuple[Action, ...]:
        session, received, head = self.session, self.received, self.head
        return tuple(
            [Action(session, number, head + tail, received) for number, tail in enumerate(self.tails, self.first)]
        )


Packed = tuple[Action, ...] | Series

_ENCODER = msgspec.msgpack.Encoder()
_ACTIONS = msgspec.msgpack.Decoder(tuple[Action, ...])
_SERIES = msgspec.msgpack.Decoder(Series)
_OF_SERIES = 0xC1
"""The first byte of a packed series, which begins nothing else; then there are four that say how many they are."""
_HEAD_BYTES = 5
_FEW = 4
"""Fewer actions are packed one by one, and so are those whose bodies have less in common."""
_LITTLE = 16


def pack(actions: tuple[Action, ...]) -> bytes:
    series = _series_of(actions) if len(actions) >= _FEW else None
    return pack_singly(actions) if series is None else pack_series(series)


def pack_singly(actions: tuple[Action, ...]) -> bytes:
    return _ENCODER.encode(actions)


def pack_series(series: Series) -> bytes:
    return bytes([_OF_SERIES]) + len(series.tails).to_bytes(4) + _ENCODER.encode(series)


def unpack(packed: bytes) -> tuple[Action, ...]:
    opened = open_packed(packed)
    return opened.actions if isinstance(opened, Series) else opened


def open_packed(packed: bytes) -> Packed:
    """As they were packed: for who can do with a series as it is."""
    try:
        if packed[:1] != bytes([_OF_SERIES]):
            return _ACTIONS.decode(packed)
        series = _SERIES.decode(memoryview(packed)[_HEAD_BYTES:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise Garbled(f"these are no actions: {error}") from None
    if not series.tails or len(series.tails) != declared(packed):
        raise Garbled(f"these are {len(series.tails)} actions, and say that they are {declared(packed)}")
    return series


def _series_of(actions: tuple[Action, ...]) -> Series | None:
    """If they are one. In few steps for many."""
    first = actions[0]
    numbers = list(range(first.number, first.number + len(actions)))
    if [action.number for action in actions] != numbers or {
        (action.session, action.received, action.is_relaxed, action.reads) for action in actions
    } != {(first.session, first.received, False, ())}:
        return None
    bodies = [action.body for action in actions]
    common = _common_bytes(min(bodies), max(bodies))
    if common < _LITTLE:
        return None
    tails = tuple([body[common:] for body in bodies])
    return Series(first.session, first.number, first.received, first.body[:common], tails)


def _common_bytes(one: bytes, other: bytes) -> int:
    """How many they begin with in common."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size]) ^ int.from_bytes(other[:size])
    return size - (differing.bit_length() + 7) // 8


def declared(packed: bytes) -> int:
    """How many actions these say they are, by their first bytes; 0 if they are none. They may still be garbled."""
    first = packed[0] if packed else 0
    if first & 0xF0 == 0x90:
        return first & 0x0F
    size = {0xDC: 2, 0xDD: 4, _OF_SERIES: 4}.get(first, 0)
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
