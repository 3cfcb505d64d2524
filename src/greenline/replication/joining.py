"""Joining: a newcomer becomes a replica, and one that was left behind becomes one again (Amir & Tutu 5.1, GAP 29, 30).

It asks a representative for a snapshot, compares what its chunks come to with what it has, and asks for the rest, some
at a time. A change of configuration ends that, and it goes on with whoever is there: chunks that it has, and that are
equal at the other's position, do not travel again. When the last one is there the database becomes the snapshot in
one step, and what the other was beside its database becomes the beginning of our log.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from greenline.kernel.actions import digest_of
from greenline.kernel.database import Compare, Lacks, Restore, Stage
from greenline.kernel.effects import Checkpoint, Effect, Halt, Ignored, Trace, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.applying import Applying, ask, go_on_from
from greenline.replication.exchange import Exchange
from greenline.replication.messages import Basis, Declined, Manifest, Pick, Piece, Want, encode_basis
from greenline.replication.outbox import Outbox
from greenline.replication.port import Joined
from greenline.replication.recovery import checkpoint_of
from greenline.replication.replica import Replica, size_of
from greenline.replication.requests import Requests, give_up_green


@dataclass(slots=True)
class Transfer:
    exchange: Exchange
    """That we were left out of."""
    source: ProcId
    basis: Basis | None = None
    digests: list[bytes] = field(default_factory=list)
    lacking: deque[int] = field(default_factory=deque)
    picked: set[int] = field(default_factory=set)
    """Chunks that we have asked for, and that are not staged yet."""
    calls: dict[int, int | None] = field(default_factory=dict)
    """What we asked of the database: to stage this chunk, or to compare."""
    is_restoring: bool = False


def begin(replica: Replica, outbox: Outbox, exchange: Exchange) -> Transfer:
    """Ask whoever can help most: who knows us as a server already, and of those the most updated."""
    plan, states = exchange.plan, exchange.states
    assert plan is not None

    def use(name: ProcId) -> tuple[bool, bool, int]:
        state = states[name]
        return not state.roster.is_gone(name), state.roster.seat_of(replica.me) is not None, state.green

    source = max(sorted(plan.members), key=use)
    meeting = exchange.place.meeting
    want = Want(meeting, replica.me, source, replica.birth, replica.settings.procedures)
    outbox.say(want, Service.AGREED)
    return Transfer(exchange, source)


def on_manifest(
    replica: Replica, transfer: Transfer, applying: Applying, manifest: Manifest, out: list[Effect]
) -> None:
    """What the snapshot comes to; another one of the same source takes its place."""
    if (manifest.to, manifest.server) != (replica.me, transfer.source) or transfer.is_restoring:
        return
    if manifest.first == 0:
        transfer.basis, transfer.digests = manifest.basis, []
    if transfer.basis != manifest.basis or manifest.first != len(transfer.digests):
        out.append(Ignored("a part of another snapshot"))
        return
    transfer.digests.extend(manifest.digests)
    if len(transfer.digests) == manifest.count:
        compare(transfer, applying, out)


def compare(transfer: Transfer, applying: Applying, out: list[Effect]) -> None:
    """What does our database lack of this snapshot?"""
    transfer.calls = {ask(applying, Compare(tuple(transfer.digests)), out): None}


def on_declined(replica: Replica, transfer: Transfer, declined: Declined, out: list[Effect]) -> None:
    if (declined.to, declined.server) == (replica.me, transfer.source):
        out.append(Halt(f"{declined.server} gives us no snapshot: {declined.why}"))


def on_lacks(
    replica: Replica, transfer: Transfer, applying: Applying, outbox: Outbox, lacks: Lacks, out: list[Effect]
) -> None:
    assert transfer.basis is not None
    transfer.lacking = deque(lacks.numbers)
    transfer.picked.clear()
    words = f"from {transfer.source}: {len(lacks.numbers)} of {len(transfer.digests)} chunks lacking"
    out.append(Trace("transfer", words, members=(transfer.source,), position=transfer.basis.position))
    go_on(replica, transfer, applying, outbox, out)


def on_piece(replica: Replica, transfer: Transfer, applying: Applying, piece: Piece, out: list[Effect]) -> None:
    basis = transfer.basis
    if (
        piece.to != replica.me
        or basis is None
        or piece.position != basis.position
        or piece.number not in transfer.picked
    ):
        return
    if digest_of(piece.data) != transfer.digests[piece.number]:
        out.append(Ignored(f"chunk {piece.number} of {piece.server} is not what it was said to be"))
        return
    transfer.calls[ask(applying, Stage(piece.data), out)] = piece.number


def on_staged(
    replica: Replica, transfer: Transfer, applying: Applying, outbox: Outbox, number: int, out: list[Effect]
) -> None:
    transfer.picked.discard(number)
    go_on(replica, transfer, applying, outbox, out)


def go_on(replica: Replica, transfer: Transfer, applying: Applying, outbox: Outbox, out: list[Effect]) -> None:
    """Ask for more, when what was asked for is there; when nothing is lacking, become the snapshot."""
    basis = transfer.basis
    if transfer.picked or transfer.is_restoring or basis is None:
        return
    if transfer.lacking:
        numbers = [transfer.lacking.popleft() for _ in range(min(replica.settings.pieces, len(transfer.lacking)))]
        transfer.picked.update(numbers)
        pick = Pick(transfer.exchange.place.meeting, replica.me, transfer.source, basis.position, tuple(numbers))
        outbox.say(pick, Service.AGREED)
        return
    transfer.is_restoring = True
    applying.is_restoring = True
    applying.is_open = False  # nothing is applied to what is about to be replaced
    restore = Restore(basis.position, tuple(transfer.digests), encode_basis(basis))
    applying.opening = ask(applying, restore, out)


def take_over(replica: Replica, requests: Requests, applying: Applying, out: list[Effect]) -> None:
    """The database is the snapshot: begin our log there. What we promised, made and hold beyond it we keep."""
    basis = applying.basis
    assert basis is not None
    was_new = replica.is_new
    _begin_queue_at(replica, basis)
    give_up_green(replica, requests, basis.position, out)
    go_on_from(applying, basis.position, basis.position)
    applying.basis = None
    out.append(Checkpoint(tuple(checkpoint_of(replica))))
    replica.is_clean = False
    replica.void_bytes = 0
    out.append(Trace("restored", position=basis.position, digest=basis.digest.hex()))
    if was_new:
        out.append(Upcall(Joined(basis.position)))


def _begin_queue_at(replica: Replica, basis: Basis) -> None:
    # Not the source's last component: the order that was installed with it may be gone after a crash.
    replica.is_new = False
    replica.era = max(replica.era, basis.era, key=lambda era: era.epoch)
    replica.low = basis.position
    replica.low_cut = dict(basis.cut)
    replica.order, replica.digests = [], [basis.digest]
    replica.roster = replica.low_roster = basis.roster
    replica.changes.clear()
    replica.voided.clear()
    replica.green_cut = dict(basis.cut)
    for creator, index in basis.cut:
        replica.red_cut[creator] = max(replica.red_cut.get(creator, 0), index)
    for server, line in basis.green_lines:
        if server != replica.me:
            replica.green_lines[server] = max(replica.green_lines.get(server, 0), line)
    replica.lamport = max(replica.lamport, basis.lamport)
    replica.index = max(replica.index, replica.red_cut.get(replica.me, 0))
    replica.ongoing = {index: body for index, body in replica.ongoing.items() if not replica.is_green(body.id)}
    replica.bodies = {each: body for each, body in replica.bodies.items() if not replica.is_green(each)}
    replica.unwritten.clear()
    replica.live_bytes = sum(map(size_of, (*replica.bodies.values(), *replica.ongoing.values())))
    replica.red_bytes = sum(map(size_of, replica.bodies.values()))
