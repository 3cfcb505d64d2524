"""An exchange: the State messages of a meeting, the plan that they make, and what has come of it so far.

Bundles that were generated before the meeting and sent in it come before their sender's State (thesis 6.2). Who
lacks earlier ones of the same creator holds them back until the exchange has filled the hole (GAP 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from greenline.kernel.effects import Effect
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.messages import Bundle, Entry, Greens, Retrans, State
from greenline.replication.outbox import Outbox
from greenline.replication.plan import Lacking, Plan
from greenline.replication.port import BundleId
from greenline.replication.replica import Replica, content_of, mark_red, size_of
from greenline.replication.server import Place


@dataclass(slots=True)
class Exchange:
    place: Place
    states: dict[ProcId, State] = field(default_factory=dict)
    held: list[Bundle] = field(default_factory=list)
    """Sent in this meeting before a State, and not the next of their creators here."""
    plan: Plan | None = None

    def hold_or_mark(self, replica: Replica, bundle: Bundle, state: str, out: list[Effect]) -> None:
        if not mark_red(replica, bundle, state, out) and not replica.has(bundle.id):
            self.held.append(bundle)

    def mark_held(self, replica: Replica, state: str, out: list[Effect]) -> None:
        """What fits by now; they were held in the order in which they came, so one pass is enough."""
        self.held = [each for each in self.held if not mark_red(replica, each, state, out) and not replica.has(each.id)]


def retransmit_greens(replica: Replica, outbox: Outbox, exchange: Exchange) -> None:
    """Phase 1, by the most updated server: the order that somebody lacks, with the bodies that somebody lacks."""
    plan = exchange.plan
    assert plan is not None
    lacking = Lacking({name: exchange.states[name] for name in plan.members}, plan)
    entries: list[Entry] = []
    size, first = 0, plan.first
    for position in range(plan.first, plan.last + 1):
        bundle = replica.at(position)
        body = replica.bodies[bundle] if lacking.body(position, bundle.creator, bundle.index) else None
        entries.append(Entry(bundle.creator, bundle.index, content_of(replica.bodies[bundle]), body))
        size += 16 if body is None else size_of(body)
        if size >= replica.settings.message_bytes or position == plan.last:
            greens = Greens(first, replica.digest_at(first - 1), tuple(entries))
            meeting, is_last = exchange.place.meeting, position == plan.last
            outbox.say(Retrans(meeting, replica.me, greens, (), is_last), Service.AGREED)
            entries, size, first = [], 0, position + 1


def retransmit_reds(replica: Replica, outbox: Outbox, exchange: Exchange) -> None:
    """Phase 2, by every holder: its creators' bundles in index order."""
    plan = exchange.plan
    assert plan is not None
    mine = [share for share in plan.reds if share.holder == replica.me]
    bodies = [
        replica.bodies[BundleId(share.creator, index)] for share in mine for index in range(share.first, share.last + 1)
    ]
    for chunk, is_last in in_chunks(bodies, replica.settings.message_bytes):
        outbox.say(Retrans(exchange.place.meeting, replica.me, None, chunk, is_last), Service.AGREED)


def in_chunks(bodies: list[Bundle], at_most: int) -> list[tuple[tuple[Bundle, ...], bool]]:
    """Cut so that none is much larger than this; the last one is marked."""
    chunks: list[list[Bundle]] = []
    size = at_most
    for body in bodies:
        if size >= at_most:
            chunks.append([])
            size = 0
        chunks[-1].append(body)
        size += size_of(body)
    return [(tuple(chunk), place == len(chunks) - 1) for place, chunk in enumerate(chunks)]
