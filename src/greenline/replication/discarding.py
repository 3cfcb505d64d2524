"""Discarding: bundles that nobody can need any more, and the log that is mostly void.

White is what every server has on disk (GAP 23): no server will ask for its body again, and some are kept only for those
who read the order from outside. A server that stays away holds the white line back; beyond `retain_at_most` bundles it
is left behind, and needs a snapshot when it returns. A body goes only once our own database has its effect on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.effects import Checkpoint, Effect, Trace
from greenline.kernel.identities import ProcId, in_order
from greenline.replication.recovery import checkpoint_of
from greenline.replication.replica import Replica, roster_at, size_of, write_greens
from greenline.replication.roster import Seat

FEWEST = 64
"""Of the bundles that are kept, at least one in so many goes at a time: the lists are moved each time."""


@dataclass(slots=True)
class Discarding:
    white: int = 0
    """The white line: every server has the order up to here on disk."""


def white_line(replica: Replica) -> int:
    """Over all servers, and over who has left and was in the last component: it is needed for the next one."""
    lines = [line_of(replica, seat) for seat in replica.roster.seats]
    if replica.roster.gone:
        lines += [replica.green_lines.get(name, 0) for name in replica.prim.servers if replica.roster.is_gone(name)]
    return min(lines)


def line_of(replica: Replica, seat: Seat) -> int:
    """Up to where a server needs nothing any more: who joined begins at its Join, or later (GAP 29)."""
    return max(replica.green_lines.get(seat.server, 0), seat.since)


def left_behind(replica: Replica) -> tuple[ProcId, ...]:
    """Servers that lack what we have discarded."""
    return in_order(seat.server for seat in replica.roster.seats if line_of(replica, seat) < replica.low)


def discard(replica: Replica, discarding: Discarding, in_database: int, out: list[Effect]) -> None:
    """After the green lines or the database have moved on."""
    white = white_line(replica)
    if white > discarding.white:
        discarding.white = white
        out.append(Trace("white", position=white))
    to = min(_white_enough(replica, white), in_database)
    bounded = min(_at_most(replica), in_database)
    if max(to, bounded) - replica.low < max(1, len(replica.order) // FEWEST):
        return
    _drop(replica, max(to, bounded))
    behind = left_behind(replica)
    why = f"left behind: {' '.join(behind)}" if behind else "white"
    out.append(Trace("discard", why, position=replica.low))


def _white_enough(replica: Replica, white: int) -> int:
    """Up to where white bundles go: some are kept for who reads the order, in number and in bytes."""
    settings = replica.settings
    by_number = white - settings.retain_after_white
    return max(by_number, _fitting(replica, settings.retain_white_bytes, white - settings.far))


def _at_most(replica: Replica) -> int:
    """Up to where bundles go whoever lacks them: only so many are kept, in number and in bytes."""
    settings = replica.settings
    by_number = replica.green - settings.retain_at_most
    return max(by_number, _fitting(replica, settings.retain_bytes, replica.green - settings.far))


def _fitting(replica: Replica, most: int, last: int) -> int:
    """Up to where bundles would have to go, but not beyond the last, so that the rest has at most so many bytes."""
    to, excess = replica.low, replica.live_bytes - most
    while excess > 0 and to < last:
        to += 1
        excess -= size_of(replica.bodies[replica.at(to)])
    return to


def _drop(replica: Replica, to: int) -> None:
    gone = to - replica.low
    replica.low_roster = roster_at(replica, to)
    replica.changes = {position: change for position, change in replica.changes.items() if position > to}
    replica.voided = {position for position in replica.voided if position > to}
    for bundle in replica.order[:gone]:
        size = size_of(replica.bodies.pop(bundle))
        replica.live_bytes -= size
        replica.void_bytes += size
        replica.low_cut[bundle.creator] = bundle.index
    del replica.order[:gone]
    del replica.digests[:gone]
    replica.low = to


def begin_anew_if_void(replica: Replica, out: list[Effect]) -> None:
    """When as much of the log is void as is not."""
    if replica.void_bytes >= max(replica.settings.checkpoint_bytes, replica.live_bytes):
        begin_anew(replica, out)


def begin_anew(replica: Replica, out: list[Effect]) -> None:
    write_greens(replica, out)
    out.append(Checkpoint(tuple(checkpoint_of(replica))))
    replica.is_clean = False
    replica.void_bytes = 0
