"""Catching up: who is far from the others comes near beside the exchange, so that nobody waits for it.

It asks the most updated server for pieces of the order, one after the other, and offers the reds that the others
lack in the same way; all of it travels through the group communication port, which paces it among everything else:
some pieces at a time, the next when the last has come back.
What is left when it says that it is near is a bounded remainder, and goes through an exchange.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.effects import Effect, Trace
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.exchange import Exchange, in_chunks
from greenline.replication.messages import Bundle, Fetch, Meeting, Near, Segment
from greenline.replication.plan import Plan, raise_to
from greenline.replication.port import BundleId
from greenline.replication.replica import Replica, mark_red, take_greens
from greenline.replication.server import Server


@dataclass(slots=True)
class CatchingUp:
    meeting: Meeting
    source: ProcId
    goal: int
    """How far the source's order went when we last heard."""
    known: dict[ProcId, int]
    """Up to where those who take part have each creator's bundles, with what we have offered."""
    under_way: int = 0
    """Pieces of our own that have not come back."""
    is_heard: bool = False
    """The source has answered, so the exchange that we were left out of is over: we may disturb."""
    is_left_behind: bool = False
    """What we need is discarded: only a snapshot helps."""


def catch_up(server: Server, exchange: Exchange, out: list[Effect]) -> CatchingUp:
    """We were left out of this exchange: begin to come near."""
    plan = exchange.plan
    assert plan is not None
    known: dict[ProcId, int] = {}
    for name in plan.members:
        raise_to(known, exchange.states[name].red_cut)
    source = _source(server.replica, exchange, plan)
    goal = exchange.states[source].green
    is_left_behind = server.replica.green < exchange.states[source].low
    catching_up = CatchingUp(exchange.place.meeting, source, goal, known, is_left_behind=is_left_behind)
    go_on(server, catching_up, out)
    return catching_up


def _source(replica: Replica, exchange: Exchange, plan: Plan) -> ProcId:
    """Of those who take part and have not discarded what we lack, the most updated; else whom the plan names."""
    can_serve = [name for name in plan.members if exchange.states[name].low <= replica.green]
    return min(can_serve, key=lambda name: (-exchange.states[name].green, name), default=plan.source)


def _surplus(replica: Replica, known: dict[ProcId, int]) -> list[Bundle]:
    """Bundles of ours that none of those who take part has: after their exchange they all lack the same.

    Those that are green here go as well: what is red to the others must have no hole before it.
    """
    return [
        replica.bodies[BundleId(creator, each)]
        for creator, index in sorted(replica.red_cut.items())
        for each in range(max(known.get(creator, 0), replica.low_cut.get(creator, 0)) + 1, index + 1)
    ]


def go_on(server: Server, catching_up: CatchingUp, out: list[Effect]) -> None:
    """The next step: pieces of the order, pieces of ours, or the word that we are near."""
    replica, meeting = server.replica, catching_up.meeting
    if catching_up.is_left_behind:
        detail = "left behind: its part of the order is discarded, it needs a snapshot"
        out.append(Trace("far", detail, members=(replica.me,)))
        return
    if catching_up.goal - replica.green > replica.settings.far // 2 or not catching_up.is_heard:
        server.outbox.say(Fetch(meeting, replica.me, catching_up.source, replica.green), Service.AGREED)
        return
    surplus = _surplus(replica, catching_up.known)
    if len(surplus) > replica.settings.far // 2:
        offer(server, catching_up, surplus)
    else:
        out.append(Trace("near", members=(replica.me,)))
        server.outbox.say(Near(meeting, replica.me), Service.AGREED)


def offer(server: Server, catching_up: CatchingUp, surplus: list[Bundle]) -> None:
    """Give the others what they lack of ours; what they have then we need not offer again."""
    replica = server.replica
    pieces = in_chunks(surplus, replica.settings.message_bytes)[: replica.settings.pieces]
    catching_up.under_way = len(pieces)
    for piece, _ in pieces:
        segment = Segment(catching_up.meeting, replica.me, replica.me, replica.durable_green, None, piece, is_last=True)
        server.outbox.say(segment, Service.AGREED)
        for bundle in piece:
            catching_up.known[bundle.creator] = bundle.index


def on_segment(server: Server, catching_up: CatchingUp | None, segment: Segment, state: str, out: list[Effect]) -> None:
    """Take what it has for us; if it is what we waited for, go on."""
    replica = server.replica
    for bundle in segment.reds:
        mark_red(replica, bundle, state, out)
    if catching_up is None:
        return
    if segment.greens is not None:
        take_greens(replica, segment.server, segment.greens, state, out)
    if segment.to != replica.me or not segment.is_last:
        return
    if segment.server == catching_up.source:
        catching_up.is_heard = True
        catching_up.goal = max(catching_up.goal, segment.durable_green)
        catching_up.is_left_behind = segment.greens is None and replica.green < segment.durable_green
    elif catching_up.under_way > 1:
        catching_up.under_way -= 1
        return
    go_on(server, catching_up, out)
