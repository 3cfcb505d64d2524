"""Recovery: the replica that a log tells of, and the log that tells of a replica (A.13).

Any prefix of what was appended is a replica that could have been. What cannot be one replica's log is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from greenline.kernel.identities import ProcId
from greenline.replication.messages import Base, Bundle, Knowledge, Ordered, Prim, Record
from greenline.replication.replica import Replica, chained, content_of, cut_of, knowledge_of, size_of, take_effect
from greenline.replication.settings import Settings

ANEW = "give this node an empty directory and a new name, and let it join anew"
"""What helps who has lost what it promised: under its old name it would be refused."""


_DAMAGED = f"it was changed, or put together from several; {ANEW}"


class LogRefused(Exception):
    """The records of this log cannot be one replica's: why, and what to do."""


def first_prim(settings: Settings) -> Prim:
    """Before any component was installed: the whole set of servers stands for it."""
    return Prim(0, 0, settings.servers, tuple(map(settings.voting.of, settings.servers)))


def recover(me: ProcId, settings: Settings, records: tuple[Record, ...], birth: bytes = b"") -> Replica:
    """The replica that a log tells of: any prefix of what was appended is one (A.13). An empty one is born."""
    replica = Replica(me, settings, first_prim(settings))
    if me not in settings.servers:
        replica.is_new, replica.birth = True, birth
    for record in records:
        match record:
            case Base():
                _begin_at(replica, record)
            case Bundle():
                _replay_body(replica, record)
            case Ordered():
                _replay_order(replica, record)
            case Knowledge(prim, attempt_index, vulnerable, yellow, promised, era):
                replica.era = era
                replica.prim, replica.attempt_index = prim, attempt_index
                replica.vulnerable, replica.yellow = vulnerable, yellow
                replica.promised = {server: (index, attempt) for server, index, attempt in promised}
    replica.index = replica.red_cut.get(me, 0)
    replica.green_lines[me] = replica.forced_green = replica.green
    return replica


def _begin_at(replica: Replica, base: Base) -> None:
    if base.cluster != replica.settings.cluster:
        raise LogRefused(
            "this log is of another cluster: other servers, weights or salt; start it with the configuration that it "
            f"was made with, or {ANEW}"
        )
    if base.server != replica.me:
        raise LogRefused(
            f"this log is {base.server}'s, and this is {replica.me}: disks were exchanged, or a machine was copied; "
            f"give each its own back, or {ANEW}"
        )
    replica.birth, replica.is_new = base.birth, base.is_new
    replica.roster = replica.low_roster = base.roster
    replica.low = base.position
    replica.low_cut = dict(base.cut)
    replica.digests = [base.digest]
    replica.green_cut = dict(base.cut)
    replica.red_cut = dict(base.cut)
    replica.green_lines = dict(base.green_lines)
    replica.lamport = base.lamport


def _replay_body(replica: Replica, bundle: Bundle) -> None:
    """In the log it is red, our own too: what was generated and never delivered travels by exchange (GAP 21)."""
    if bundle.index != replica.red_cut.get(bundle.creator, 0) + 1:
        raise LogRefused(f"{bundle.id} stands in the log where it cannot: {_DAMAGED}")
    replica.red_cut[bundle.creator] = bundle.index
    replica.lamport = max(replica.lamport, bundle.lamport)
    replica.bodies[bundle.id] = bundle
    replica.live_bytes += size_of(bundle)
    replica.red_bytes += size_of(bundle)
    if bundle.durable_green > replica.green_lines.get(bundle.creator, 0):
        replica.green_lines[bundle.creator] = bundle.durable_green


def _replay_order(replica: Replica, ordered: Ordered) -> None:
    if ordered.first != replica.green + 1:
        raise LogRefused(f"position {ordered.first} stands in the log after {replica.green}: {_DAMAGED}")
    for bundle in ordered.ids:
        if not replica.has(bundle) or replica.green_cut.get(bundle.creator, 0) != bundle.index - 1:
            raise LogRefused(f"{bundle} is green in the log before it can be: {_DAMAGED}")
        replica.green_cut[bundle.creator] = bundle.index
        body = replica.bodies[bundle]
        replica.order.append(bundle)
        replica.digests.append(chained(replica.digests[-1], bundle, content_of(body)))
        replica.red_bytes -= size_of(body)
        take_effect(replica, replica.green, body)


def base_of(replica: Replica) -> Base:
    """What its log begins with."""
    return Base(
        cluster=replica.settings.cluster,
        server=replica.me,
        position=replica.low,
        digest=replica.digests[0],
        cut=cut_of(replica.low_cut),
        green_lines=cut_of(replica.green_lines),
        lamport=replica.lamport,
        roster=replica.low_roster,
        birth=replica.birth,
        is_new=replica.is_new,
    )


def checkpoint_of(replica: Replica) -> Iterator[Record]:
    """The records that a log begun anew starts with: the same replica."""
    yield base_of(replica)
    yield from sorted(replica.bodies.values(), key=lambda body: (body.creator, body.index))
    yield from (replica.ongoing[index] for index in sorted(replica.ongoing))
    if replica.order:
        yield Ordered(replica.low + 1, tuple(replica.order))
    yield knowledge_of(replica)
