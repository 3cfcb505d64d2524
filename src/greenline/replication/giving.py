"""Giving a snapshot: what the representative of a newcomer does for it, or for who was left behind (Amir & Tutu 5.1).

It orders the newcomer's Join, wherever it is: in a non-primary component that is red, and nothing is given until it is
green (GAP 32). Then the database holds its committed state aside, at any position from the Join on, and
the chunks that the other asks for travel through the group communication port, which paces them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from greenline.kernel.database import Chunk, SnapshotBegin, SnapshotChunk, SnapshotEnd, SnapshotHeld
from greenline.kernel.effects import Effect
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.applying import Applying, ask
from greenline.replication.messages import Basis, Declined, Manifest, Pick, Piece, Want
from greenline.replication.outbox import Outbox
from greenline.replication.port import Join
from greenline.replication.replica import Replica, cut_at, cut_of, roster_at
from greenline.replication.requests import Requests, reconfigure_ourselves
from greenline.replication.roster import changed

DIGESTS_A_MESSAGE = 1_000


@dataclass(slots=True)
class Giving:
    wants: dict[ProcId, Want] = field(default_factory=dict)
    """Who waits for a manifest."""
    picks: list[Pick] = field(default_factory=list)
    served: dict[ProcId, Want] = field(default_factory=dict)
    """Who has been given a manifest of what is held."""
    joins: set[Join] = field(default_factory=set)
    """That we have asked for in this life."""
    is_asked: bool = False
    """The database was asked to hold a snapshot."""
    held: SnapshotHeld | None = None
    reading: dict[int, Pick] = field(default_factory=dict)
    """Chunks that were asked of the database, by call."""

    def forget(self) -> None:
        """A new meeting begins: whoever still needs something says so again."""
        self.wants.clear()
        self.served.clear()
        self.picks.clear()
        self.reading.clear()


def on_want(giving: Giving, me: ProcId, want: Want) -> None:
    if want.source == me:
        giving.wants[want.server] = want


def on_pick(giving: Giving, me: ProcId, pick: Pick) -> None:
    if pick.source == me:
        giving.picks.append(pick)


def serve(
    replica: Replica, giving: Giving, requests: Requests, applying: Applying, outbox: Outbox, out: list[Effect]
) -> None:
    """Our exchange is over, and we may speak: the next step for everybody who waits."""
    for want in list(giving.wants.values()):
        since = _since(replica, want.server)
        if since is None:
            _let_join(replica, giving, requests, outbox, want)
        elif _is_useful(replica, giving.held, since):
            giving.served[want.server] = giving.wants.pop(want.server)
            _say_manifest(replica, giving, outbox, want)
        elif not giving.is_asked and applying.is_open and applying.committed >= since:
            giving.is_asked = True
            giving.held = None
            giving.wants.update(giving.served)  # what they were to be given is let go
            giving.served.clear()
            ask(applying, SnapshotBegin(), out)
    while giving.picks:
        pick = giving.picks.pop(0)
        if giving.held is not None and pick.position == giving.held.position:
            for number in pick.numbers:
                if number < len(giving.held.digests):
                    giving.reading[ask(applying, SnapshotChunk(pick.position, number), out)] = pick


def _since(replica: Replica, server: ProcId) -> int | None:
    """From which position on it may have a snapshot, if it may: who has left may be needed for the next component."""
    seat, gone = replica.roster.seat_of(server), replica.roster.gone_of(server)
    if seat is not None:
        return seat.since
    return None if gone is None else gone.position


def _is_useful(replica: Replica, held: SnapshotHeld | None, since: int) -> bool:
    """Can its receiver go on from there with our log?"""
    return held is not None and held.position >= max(since, replica.low)


def _let_join(replica: Replica, giving: Giving, requests: Requests, outbox: Outbox, want: Want) -> None:
    """Order its Join, once; or say why nothing would come of it, as far as we know."""
    join = Join(want.server, want.birth, want.procedures)
    outcome = changed(replica.roster, join, replica.green, replica.settings.voting.lower_bound).outcome
    if outcome.value:
        del giving.wants[want.server]
        why = outcome.value.decode()
        outbox.say(Declined(want.meeting, replica.me, want.server, why), Service.AGREED)
    elif join not in giving.joins and not replica.has_left:
        giving.joins.add(join)
        reconfigure_ourselves(requests, join)


def on_held(giving: Giving, held: SnapshotHeld) -> None:
    giving.is_asked = False
    giving.held = held


def _say_manifest(replica: Replica, giving: Giving, outbox: Outbox, want: Want) -> None:
    held = giving.held
    assert held is not None
    basis = basis_at(replica, held.position)
    for first in range(0, max(1, len(held.digests)), DIGESTS_A_MESSAGE):
        digests = held.digests[first : first + DIGESTS_A_MESSAGE]
        manifest = Manifest(want.meeting, replica.me, want.server, basis, first, digests, len(held.digests))
        outbox.say(manifest, Service.AGREED)


def basis_at(replica: Replica, position: int) -> Basis:
    """What we were at a position whose bundles are on our disk."""
    return Basis(
        position=position,
        digest=replica.digest_at(position),
        cut=cut_at(replica, position),
        green_lines=cut_of(replica.green_lines),
        lamport=replica.lamport,
        roster=roster_at(replica, position),
        era=replica.era,
    )


def on_chunk(replica: Replica, giving: Giving, outbox: Outbox, call: int, chunk: Chunk) -> None:
    pick = giving.reading.pop(call, None)
    if pick is not None:
        piece = Piece(pick.meeting, replica.me, pick.server, chunk.position, chunk.number, chunk.data)
        outbox.say(piece, Service.AGREED)


def let_go(giving: Giving, applying: Applying, out: list[Effect]) -> None:
    """Nobody here needs a snapshot any more."""
    if giving.held is not None:
        giving.held = None
        ask(applying, SnapshotEnd(), out)
