"""The wire: what a client and a node say to each other on one connection, in frames, pipelined in both directions.

A frame is four bytes that say how long the rest is, and the rest: one message. The client begins with `Hello`, and is
told `Welcome` or `No`. From then on it asks whatever it likes without waiting; tickets are its own, from 1, and every
answer names the one that it is to. A `Write` is answered with `Taken` once it is accepted, if that was asked for, and
with `Done` once it is green; everything else once. Who is told `Lost`, or loses the connection, asks again, anywhere,
for the same actions: they are decided once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated

import msgspec

from greenline.kernel.actions import Outcome, OutcomeOf
from greenline.kernel.codec import Garbled
from greenline.kernel.database import Activate, Expire, System
from greenline.kernel.statements import Member, Role
from greenline.replication.port import BundleId, Leave, Level, MadeIn, Reads, Weigh, Where

VERSION = 1
MOST_BYTES = 64 << 20
"""Of a frame, either way."""
MOST_ACTIONS = 4096
"""Of one `Write`: short ones could else keep everybody busy for seconds."""
UNKNOWN_YET_BYTES = 4096
"""Of a frame from somebody who has not been welcomed."""
_LENGTH = struct.Struct(">I")

Ticket = Annotated[int, msgspec.Meta(ge=1)]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    version: int
    user: str
    password: str


class Write(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Order these actions, packed by `kernel.actions`: in one bundle, in this order."""

    ticket: Ticket
    count: int
    actions: bytes
    level: Level = Level.LOCAL
    tell_taken: bool = False


class Read(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A query (`kernel.statements`), or what became of a request."""

    ticket: Ticket
    request: bytes | None
    reads: Reads = Reads.STRICT
    after: int = 0
    is_patient: bool = True
    outcome_of: OutcomeOf | None = None


class Administer(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Change the cluster itself. Answered with `Done`; its outcome may be that nothing came of it."""

    ticket: Ticket
    change: Leave | Weigh | Activate | Expire


class Appoint(msgspec.Struct, frozen=True, array_like=True, tag=9, gc=False):
    """Say who may use the cluster, or where a replica is. Answered likewise."""

    ticket: Ticket
    change: Role | Member


class Survive(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The majority is lost for good, and an administrator says so (`replication.port.Force`)."""

    ticket: Ticket
    survivors: tuple[str, ...]
    dead: tuple[str, ...]
    reason: str


class Log(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """The order from this position on, up to that one if it is said, else as it grows. Answered with `Ordered`, again
    and again, until `Enough`, or its end."""

    ticket: Ticket
    first: int
    last: int | None = None


class Enough(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """No more answers to this ticket: a query is stopped, a log not followed any more. What is ordered stays so."""

    ticket: Ticket


class Digests(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """Where does this replica stand, and what do its order and its state come to? Answered with `Stands`."""

    ticket: Ticket


Request = Hello | Write | Read | Administer | Appoint | Survive | Log | Enough | Digests


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    version: int
    where: Where
    position: int
    """The green line that is on this node's disk: what new sessions are named by."""
    role: str
    clients: dict[str, str]
    """Where the nodes of the cluster listen for clients, as far as this one knows."""
    statement_bytes: int
    """Of an action, at most."""


class Taken(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """Accepted: on this replica's disk, and will be ordered."""

    ticket: int
    bundle: BundleId
    where: Where


class Done(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """Green: the bundle's position, the place of the first action in it, and what each came to."""

    ticket: int
    position: int
    sub: int
    outcomes: tuple[Outcome, ...]
    level: Level
    where: Where


class Rows(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """The answer to a `Read`."""

    ticket: int
    rows: bytes
    outcome: Outcome | None
    position: int
    reds: int
    reads: Reads
    where: Where


class No(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """Not taken: nothing of it is kept. Ticket 0: the connection is over."""

    ticket: int
    kind: str
    """`password`, `role`, `too large`, `malformed`, `busy`, `no primary`, `stopped`, `closed`, `unavailable`..."""
    reason: str
    is_retriable: bool = False


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """Taken, and this server will not learn what becomes of it: ask for the same again, elsewhere."""

    ticket: int
    reason: str


class Bundle(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One place of the order."""

    position: int
    bundle: BundleId
    actions: tuple[bytes, ...]
    change: bytes = b""
    """A change of the cluster, as the engine orders it."""
    content: int = 0
    """Its checksum: with it the digest of the order can be followed from place to place (`replication.replica`)."""
    system: tuple[System, ...] = ()
    """What the database does here by itself: sessions that end because of that change."""
    made_in: MadeIn | None = None
    """The component that its server was in then."""


class Ordered(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    ticket: int
    bundles: tuple[Bundle, ...]
    is_end: bool
    digest: bytes = b""
    """Of the order up to the last of them; if there is none, up to where they would begin, as far as that is kept."""
    before: bytes = b""
    """Of the order before the first of them."""


class Stands(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    ticket: int
    position: int
    order: bytes
    state: bytes
    where: Where


Answer = Welcome | Taken | Done | Rows | No | Lost | Ordered | Stands

_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def framed(message: Request | Answer) -> bytes:
    data = _ENCODER.encode(message)
    return _LENGTH.pack(len(data)) + data


def request_of(frame: bytes | memoryview) -> Request:
    """Raises `Garbled`."""
    try:
        return _REQUESTS.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise Garbled(f"this is no request: {error}") from None


def answer_of(frame: bytes | memoryview) -> Answer:
    """Raises `Garbled`."""
    try:
        return _ANSWERS.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise Garbled(f"this is no answer: {error}") from None


class TooLong(Exception):
    """A frame says that it is longer than it may be: what follows cannot be told apart any more."""


class Frames:
    """What came on a connection, cut into frames."""

    def __init__(self, most: int = UNKNOWN_YET_BYTES) -> None:
        self.most = most
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """All frames that are whole by now. Raises `TooLong`."""
        self._rest += data
        at = 0
        size = len(self._rest)
        try:
            while size - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._rest, at)
                if length > self.most:
                    raise TooLong(f"a frame of {length} bytes; at most {self.most} are taken")
                end = at + _LENGTH.size + length
                if end > size:
                    break
                yield bytes(memoryview(self._rest)[at + _LENGTH.size : end])
                at = end
        finally:
            del self._rest[:at]
