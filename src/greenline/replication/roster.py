"""The roster: which servers exist, a function of the green prefix and of nothing else (Amir & Tutu 5.1).

It governs who may take part, what may be discarded, and how much everybody will count. It does not touch the quorum of
the component that is being left: weights are sampled when a component is installed (GAP 24 and 33). Names are
identities: one that has left is never used again (GAP 27), and the bundles that it made are still ordered (GAP 26).
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.database import Activate, Expire, System
from greenline.kernel.identities import ProcId
from greenline.replication.port import Announce, Change, Join, Leave, Name, Natural, Procedure, Seen, Weigh
from greenline.replication.settings import Settings


class Seat(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A server, and since which position it is one."""

    server: Name
    weight: Natural
    since: Natural = 0
    birth: bytes = b""
    """Of a founder none: its name is in everybody's configuration."""
    procedures: tuple[Procedure, ...] = ()


class Gone(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A server that was one up to this position."""

    server: Name
    position: Natural
    is_void: bool = False


class Ending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Sessions are to end (`Expire`), once everybody knows: who accepts something for one of them before is not to be
    made a liar. Its bundles of before come before its `Seen`, so all of them are decided by then."""

    position: Natural
    before: Natural
    waiting: tuple[Name, ...]
    """Servers that have not said yet that they know."""


class Roster(msgspec.Struct, frozen=True, array_like=True, gc=False):
    seats: tuple[Seat, ...]
    gone: tuple[Gone, ...] = ()
    active: tuple[Procedure, ...] = ()
    """The version of each procedure that is called from here on."""
    ending: Ending | None = None

    @property
    def servers(self) -> tuple[ProcId, ...]:
        return tuple(seat.server for seat in self.seats)

    def seat_of(self, server: ProcId) -> Seat | None:
        return next((seat for seat in self.seats if seat.server == server), None)

    def weight_of(self, server: ProcId) -> int:
        seat = self.seat_of(server)
        return seat.weight if seat is not None else 0

    def gone_of(self, server: ProcId) -> Gone | None:
        return next((gone for gone in self.gone if gone.server == server), None)

    def is_gone(self, server: ProcId) -> bool:
        return self.gone_of(server) is not None

    def is_void(self, server: ProcId) -> bool:
        """Has nothing of this server any effect any more?"""
        return any(gone.is_void for gone in self.gone if gone.server == server)

    @property
    def digest(self) -> str:
        return blake2b(msgspec.msgpack.encode(self), digest_size=8).hexdigest()


class Changed(msgspec.Struct, frozen=True, gc=False):
    roster: Roster
    outcome: Outcome
    system: tuple[System, ...] = ()
    """What the database is to do about it."""


def founders(settings: Settings) -> Roster:
    return Roster(tuple(Seat(server, settings.voting.of(server)) for server in settings.servers))


def changed(roster: Roster, change: Change, position: int, lower_bound: int) -> Changed:
    """What a change at this position comes to; the same everywhere, also if nothing comes of it."""
    why = _why_not(roster, change, lower_bound)
    if why is not None:
        return Changed(roster, Outcome(Verdict.FAILED, why.encode(), position))
    done = Outcome(Verdict.DONE, b"", position)
    match change:
        case Activate(name, version, digest):
            others = [each for each in roster.active if each.name != name]
            active = tuple(sorted([*others, Procedure(name, version, digest)]))
            return Changed(msgspec.structs.replace(roster, active=active), done, (change,))
        case Expire(before):
            ending = Ending(position, min(before, position), roster.servers)
            return _ended(msgspec.structs.replace(roster, ending=ending), done)
        case Seen(server, seen) if roster.ending is not None and seen >= roster.ending.position:
            return _ended(_without(roster, roster.ending, server), done)
        case Seen():
            return Changed(roster, done)
        case _:
            reseated = _reseated(roster, change, position)
            if reseated.ending is not None and isinstance(change, Leave):
                return _ended(_without(reseated, reseated.ending, change.server), done)
            return Changed(reseated, done)


def _without(roster: Roster, ending: Ending, server: ProcId) -> Roster:
    """It need not be waited for any more."""
    waiting = tuple(name for name in ending.waiting if name != server)
    return msgspec.structs.replace(roster, ending=msgspec.structs.replace(ending, waiting=waiting))


def _ended(roster: Roster, done: Outcome) -> Changed:
    """If nobody is waited for, the sessions end here."""
    ending = roster.ending
    if ending is None or ending.waiting:
        return Changed(roster, done)
    return Changed(msgspec.structs.replace(roster, ending=None), done, (Expire(ending.before),))


def in_words(change: Change) -> str:
    match change:
        case Join(server):
            return f"join {server}"
        case Leave(server, is_void):
            return f"leave {server}{' void' if is_void else ''}"
        case Weigh(server, weight):
            return f"weigh {server} {weight}"
        case Announce(server):
            return f"announce {server}"
        case Activate(name, version):
            return f"activate {name} {version}"
        case Expire(before):
            return f"expire {before}"
        case Seen(server, position):
            return f"seen {server} {position}"


def _reseated(roster: Roster, change: Join | Leave | Weigh | Announce, position: int) -> Roster:
    seats = {seat.server: seat for seat in roster.seats}
    seat = seats.get(change.server)
    gone = roster.gone
    match change:
        case Join(server, birth, procedures):
            seats.setdefault(server, Seat(server, 1, position, birth, procedures))
        case Leave(server, is_void) if seat is not None:
            del seats[server]
            gone = tuple(sorted([*gone, Gone(server, position, is_void)]))
        case Weigh(server, weight) if seat is not None:
            seats[server] = msgspec.structs.replace(seat, weight=weight)
        case Announce(server, procedures) if seat is not None:
            seats[server] = msgspec.structs.replace(seat, procedures=procedures)
    return msgspec.structs.replace(roster, seats=tuple(sorted(seats.values())), gone=gone)


def _why_not(roster: Roster, change: Change, lower_bound: int) -> str | None:
    """Why nothing comes of a change."""
    match change:
        case Join(server, birth, procedures):
            return _why_not_join(roster, server, birth, procedures)
        case Leave(server):
            if (gone := roster.gone_of(server)) is not None:
                late = f"{server} left at position {gone.position} already, and what it had made counts"
                return late if change.is_void and not gone.is_void else None
            return _unknown(roster, server) or _too_light(roster, server, 0, lower_bound)
        case Weigh(server, weight):
            return _unknown(roster, server) or _too_light(roster, server, weight, lower_bound)
        case Announce(server) | Seen(server):
            return _unknown(roster, server)
        case Activate(name, version, digest):
            wanted = Procedure(name, version, digest)
            lacking = [seat.server for seat in roster.seats if wanted not in seat.procedures]
            if lacking:
                return f"{' '.join(lacking)} do not have version {version} of {name}; install it there first"
        case Expire():
            if roster.ending is not None:
                return (
                    f"sessions are about to end already, once {' '.join(roster.ending.waiting)} know it; wait for them"
                )
    return None


def _why_not_join(roster: Roster, server: ProcId, birth: bytes, procedures: tuple[Procedure, ...]) -> str | None:
    seat, gone = roster.seat_of(server), roster.gone_of(server)
    if gone is not None:
        return f"{server} was the name of a server that left at position {gone.position}; take a new one"
    if seat is not None and seat.birth != birth:
        return f"{server} is the name of another server already; take a new one"
    lacking = [f"{each.name} {each.version}" for each in roster.active if each not in procedures]
    if lacking:
        return f"{server} does not have the procedures that are called here: {', '.join(lacking)}; install them first"
    return None


def _unknown(roster: Roster, server: ProcId) -> str | None:
    return None if roster.seat_of(server) is not None else f"{server} is no server of this cluster"


def _too_light(roster: Roster, server: ProcId, weight: int, lower_bound: int) -> str | None:
    """There must always be a way to a primary component."""
    left = sum(seat.weight for seat in roster.seats if seat.server != server) + weight
    if left < max(1, lower_bound):
        return f"all together would weigh {left} then, and a primary component needs {max(1, lower_bound)}"
    return None
