"""The engine's port: what an application asks of a replica, and what it is told.

`Submit`, `Ask`, `Reconfigure` and `Force` are downcalls, all others are upcalls. What is submitted together stays
together: it travels in one bundle, in the order in which it was given. `Accepted` comes once the bundle is safe at this
replica: it will be ordered, now or after the network has healed. `Replied` comes once it is green, applied,
and as durable as was asked for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from greenline.kernel.actions import Outcome, OutcomeOf
from greenline.kernel.database import Activate, Expire
from greenline.kernel.identities import NAME, ProcId

Name = Annotated[ProcId, msgspec.Meta(pattern=NAME)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]


class BundleId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The papers' action id: who made it, and its number among the bundles of that server, from 1, across lives."""

    creator: Name
    index: Count

    def __str__(self) -> str:
        return f"{self.creator}#{self.index}"


class Level(StrEnum):
    """How durable a green reply is, from least to most."""

    MEMORY = "memory"
    """Green. A crash of the whole primary component before its next forced write may change its place."""
    LOCAL = "local"
    """Its green mark is on this replica's disk: its place survives any crash."""
    QUORUM = "quorum"
    """The green mark is on the disks of a quorum: it survives also the loss of this disk."""


class Procedure(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A deterministic procedure that active actions may call: its name, version, and what its code comes to."""

    name: str
    version: Count
    digest: bytes


class Join(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A new replica: from here on nothing is discarded that it needs. Asked for by its representative."""

    server: Name
    birth: bytes
    """Tells it from another of the same name."""
    procedures: tuple[Procedure, ...] = ()


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A replica goes, or is dead; its name is never used again."""

    server: Name
    is_void: bool = False
    """What is still to be ordered of it has no effect; else it is ordered as ever: nothing accepted is lost."""


class Weigh(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A replica counts so much from the next primary component on."""

    server: Name
    weight: Natural


class Announce(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A replica has these procedures."""

    server: Name
    procedures: tuple[Procedure, ...]


class Seen(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """A replica has the order up to here on disk: what it makes from now on is made by one who knows that."""

    server: Name
    position: Natural


Change = Join | Leave | Weigh | Announce | Activate | Expire | Seen
"""Of the cluster itself, ordered like everything else."""


class Where(msgspec.Struct, frozen=True, gc=False):
    """Who says it, and in which component."""

    server: Name
    is_primary: bool
    prim_index: Natural
    """Of the last primary component that it knows; its own if `is_primary`."""
    members: tuple[Name, ...]
    """Who is connected with it."""


class MadeIn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """In which component a bundle was made: what `Where` said there."""

    is_primary: bool
    prim_index: Natural
    members: tuple[Name, ...]


class Submit(msgspec.Struct, frozen=True, gc=False):
    """Order these actions (packed by `kernel.actions`), `count` of them. Tickets are the caller's, new for each.

    They are opened by the database only, once they are ordered: what it cannot open then has failed, everywhere.
    """

    ticket: int
    actions: bytes
    count: Count
    level: Level = Level.LOCAL


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The bundle that holds them is durable here: red, or already more. To relaxed actions this is the answer."""

    ticket: int
    bundle: BundleId
    where: Where


class Replied(msgspec.Struct, frozen=True, gc=False):
    """They are green: the bundle's position, the place of the first of them in it, and an outcome for each."""

    ticket: int
    position: Count
    sub: Natural
    outcomes: tuple[Outcome, ...]
    level: Level
    where: Where


class Reads(StrEnum):
    """What a query may see, from the most to the least demanding."""

    STRICT = "strict"
    """All that was answered anywhere before it was asked. Waits for a primary component."""
    SESSION = "session"
    """The green state at a position or later: what its client has seen or written. Waits for that."""
    WEAK = "weak"
    """The green state here, as it is: perhaps old, never wrong."""
    DIRTY = "dirty"
    """Also what is accepted here, and may yet be ordered otherwise."""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """A query; it is not ordered and not logged. What waits here is lost with this server: ask again, anywhere."""

    ticket: int
    request: bytes | OutcomeOf
    reads: Reads = Reads.STRICT
    after: Natural = 0
    """For `SESSION`: the position that must be seen."""
    is_patient: bool = True
    """False: rather be refused than wait for a primary component, or for that position."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The state at `position` says `rows`; `reds` bundles on top of it, if it is dirty."""

    ticket: int
    rows: bytes
    outcome: Outcome | None
    """If that was asked for."""
    position: Natural
    reds: Natural
    reads: Reads
    where: Where


class Reconfigure(msgspec.Struct, frozen=True, gc=False):
    """Order a change of the cluster itself (`replication.roster`). Answered as a submission of one action is."""

    ticket: int
    change: Change
    level: Level = Level.LOCAL


class Force(msgspec.Struct, frozen=True, gc=False):
    """The majority is lost for good: an operator decides that these survive and those are dead, outside the protocol.

    All survivors must be connected, none of the dead may be, and together they are everybody whose word is needed. The
    price: what was only on the disks of the dead is lost, answered or not, and none of the dead may come back.
    Answered with `Forced` or `Refused`.
    """

    ticket: int
    survivors: tuple[Name, ...]
    dead: tuple[Name, ...]
    reason: str


class Forced(msgspec.Struct, frozen=True, gc=False):
    """It is decided, and durable here: a primary component of the survivors follows."""

    ticket: int
    epoch: Count


class Refused(msgspec.Struct, frozen=True, gc=False):
    """They were not taken, and nothing of them is kept: why, and whether the same may be asked again later."""

    ticket: int
    reason: str
    is_retriable: bool = True


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    """They were taken, and this server will not learn what becomes of them: ask the same again, elsewhere."""

    ticket: int
    reason: str


class Joined(msgspec.Struct, frozen=True, gc=False):
    """This server is a replica from now on: it has the state at this position."""

    position: Natural


class Left(msgspec.Struct, frozen=True, gc=False):
    """This server's leave is safe: it may be stopped for good."""

    position: Natural
    """Where in the order it left."""


def is_sound(what: object, kind: Any) -> bool:
    """Would others read it as it is? Not everything that a caller can make is what its type says."""
    try:
        return bool(msgspec.msgpack.decode(msgspec.msgpack.encode(what), type=kind) == what)
    except (msgspec.MsgspecError, UnicodeError, OverflowError):
        return False
