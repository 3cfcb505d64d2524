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
from greenline.replication.joining import Transfer, begin
from greenline.replication.messages import Bundle, Fetch, Meeting, Near, Segment
from greenline.replication.plan import Plan, raise_to
from greenline.replication.port import BundleId
from greenline.replication.replica import Replica, mark_red, take_greens
from greenline.replication.requests import tell_left
from greenline.replication.roster import Gone
from greenline.replication.server import Server

LEFT_BEHIND = "left behind: its part of the order is discarded, it needs a snapshot"


@dataclass(slots=True)
class CatchingUp:
    exchange: Exchange
    """That we were left out of."""
    source: ProcId
    goal: int
    """How far the source's order went when we last heard."""
    known: dict[ProcId, int]
    """Up to where those who take part have each creator's bundles, with what we have offered."""
    under_way: int = 0
    """Pieces of our own that have not come back."""
    is_heard: bool = False
    """The source has answered, so the exchange that we were left out of is over: we may disturb."""
    has_offered: bool = False
    """We were removed, and have offered what the others lacked."""
    is_left_behind: bool = False
    """What we need is discarded: only a snapshot helps."""

    @property
    def meeting(self) -> Meeting:
        return self.exchange.place.meeting


def catch_up(server: Server, exchange: Exchange, out: list[Effect]) -> CatchingUp | Transfer | None:
    """We were left out of this exchange: begin to come near. Nothing can be done while all are newcomers."""
    plan, replica = exchange.plan, server.replica
    assert plan is not None
    if not plan.members:
        return None
    source = _source(replica, exchange, plan)
    known: dict[ProcId, int] = {}
    for name in plan.members:
        raise_to(known, exchange.states[name].red_cut)
    catching_up = CatchingUp(exchange, source, exchange.states[source].green, known)
    if replica.is_new or replica.green < exchange.states[source].low:
        gone = _removal(replica, exchange, plan)
        if gone is None:
            if not replica.is_new:
                out.append(Trace("far", LEFT_BEHIND, members=(replica.me,)))
            return begin(replica, server.outbox, exchange)
        replica.removed_at = gone.position
        if gone.is_void:
            known.update(replica.red_cut)
    go_on(server, catching_up, out)
    return catching_up


def _removal(replica: Replica, exchange: Exchange, plan: Plan) -> Gone | None:
    """Does the most updated of them know that we have left, and can nobody need what we know?"""
    states = [exchange.states[name] for name in (*plan.members, replica.me)]
    longest = max(states, key=lambda state: state.green)
    newest = max(states, key=lambda state: state.prim.rank)
    attempts = [state.vulnerable.set for state in states if state.vulnerable.is_valid]
    is_needed = any(replica.me in servers for servers in (newest.prim.servers, *attempts))
    return None if is_needed else longest.roster.gone_of(replica.me)


def _source(replica: Replica, exchange: Exchange, plan: Plan) -> ProcId:
    """Of those who take part and have not discarded what we lack, the most updated; else whom the plan names."""
    can_serve = [name for name in plan.members if exchange.states[name].low <= replica.green]
    gone = exchange.states[plan.source].roster.is_gone
    return min(can_serve, key=lambda name: (gone(name), -exchange.states[name].green, name), default=plan.source)


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
    if replica.removed_at is not None:
        hand_over(server, catching_up, out)
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


def hand_over(server: Server, catching_up: CatchingUp, out: list[Effect]) -> None:
    """We were removed, and need nothing any more. What we have accepted is not lost with us: others take it.

    They have it when their next States say so, which are durable. Then we may go.
    """
    replica, meeting = server.replica, catching_up.meeting
    surplus = _surplus(replica, catching_up.known)
    if not surplus and not catching_up.has_offered:
        tell_left(replica, out)
    elif not catching_up.is_heard:
        server.outbox.say(Fetch(meeting, replica.me, catching_up.source, replica.green), Service.AGREED)
    elif surplus:
        catching_up.has_offered = True
        offer(server, catching_up, surplus)
    else:
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
        if catching_up.is_left_behind and replica.removed_at is None:
            out.append(Trace("far", LEFT_BEHIND, members=(replica.me,)))
            return
    elif catching_up.under_way > 1:
        catching_up.under_way -= 1
        return
    go_on(server, catching_up, out)
