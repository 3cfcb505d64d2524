"""Catching up: who is far from the others comes near beside the exchange, so that nobody waits for it.

It asks the most updated server for pieces of the order, one after the other, and offers the reds that the others
lack in the same way; all of it travels through the group communication port, which paces it among everything else:
one piece at a time, the next when the last has come back.
What is left when it says that it is near is a bounded remainder, and goes through an exchange.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from greenline.kernel.effects import Effect, Halt, Trace
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.exchange import Exchange, in_chunks
from greenline.replication.messages import Bundle, Fetch, Meeting, Near, Segment
from greenline.replication.port import BundleId
from greenline.replication.replica import mark_red, take_greens
from greenline.replication.server import Server


@dataclass(slots=True)
class CatchingUp:
    meeting: Meeting
    source: ProcId
    goal: int
    """How far the source's order went when we last heard."""
    offers: deque[tuple[Bundle, ...]] = field(default_factory=deque)
    """Reds that the others lack, in pieces that are still to be said."""
    is_heard: bool = False
    """The source has answered, so the exchange that we were left out of is over: we may disturb."""
    is_left_behind: bool = False
    """What we need is discarded: only a snapshot helps."""


def catch_up(server: Server, exchange: Exchange, out: list[Effect]) -> CatchingUp:
    """We were left out of this exchange: begin to come near."""
    plan = exchange.plan
    assert plan is not None
    catching_up = CatchingUp(
        exchange.place.meeting,
        plan.source,
        exchange.states[plan.source].green,
        deque(chunk for chunk, _ in in_chunks(_surplus(server, exchange), server.replica.settings.message_bytes)),
        is_left_behind=server.replica.green < exchange.states[plan.source].low,
    )
    go_on(server, catching_up, out)
    return catching_up


def _surplus(server: Server, exchange: Exchange) -> list[Bundle]:
    """Reds of ours that none of those who take part has: after their exchange they all lack the same."""
    replica, plan = server.replica, exchange.plan
    assert plan is not None
    known: dict[ProcId, int] = {}
    for name in plan.members:
        for creator, index in (*exchange.states[name].red_cut, *exchange.states[name].green_cut):
            known[creator] = max(known.get(creator, 0), index)
    return [
        replica.bodies[BundleId(creator, each)]
        for creator, index in exchange.states[replica.me].red_cut
        for each in range(max(known.get(creator, 0), replica.green_cut.get(creator, 0)) + 1, index + 1)
    ]


def go_on(server: Server, catching_up: CatchingUp, out: list[Effect]) -> None:
    """The next step: a piece of the order, a piece of ours, or the word that we are near."""
    replica, meeting = server.replica, catching_up.meeting
    if catching_up.is_left_behind:
        detail = "left behind: its part of the order is discarded, it needs a snapshot"
        out.append(Trace("far", detail, members=(replica.me,)))
    elif catching_up.goal - replica.green > replica.settings.far // 2 or not catching_up.is_heard:
        server.outbox.say(Fetch(meeting, replica.me, catching_up.source, replica.green), Service.AGREED)
    elif catching_up.offers:
        offer = catching_up.offers.popleft()
        segment = Segment(meeting, replica.me, replica.me, replica.durable_green, None, offer)
        server.outbox.say(segment, Service.AGREED)
    else:
        out.append(Trace("near", members=(replica.me,)))
        server.outbox.say(Near(meeting, replica.me), Service.AGREED)


def on_segment(server: Server, catching_up: CatchingUp | None, segment: Segment, state: str, out: list[Effect]) -> None:
    """Take what it has for us; if it is what we waited for, go on."""
    replica = server.replica
    for bundle in segment.reds:
        mark_red(replica, bundle, state, out)
    if catching_up is None:
        return
    if segment.greens is not None:
        wrong = take_greens(replica, segment.greens, state, out)
        if wrong is not None:
            out.append(Halt(f"{segment.server} says otherwise: {wrong}; compare the databases before you go on"))
    if segment.to == replica.me:
        if segment.server == catching_up.source:
            catching_up.is_heard = True
            catching_up.goal = max(catching_up.goal, segment.durable_green)
            catching_up.is_left_behind = segment.greens is None and replica.green < segment.durable_green
        go_on(server, catching_up, out)
