"""Queries: never ordered, never logged (thesis 7.1). What they wait for is what their kind promises (Amir & Tutu 6).

A strict query must see all that was answered anywhere before it was asked. It waits for a `Barrier` of its server that
was made after it came, and is safe in the regular configuration of the primary component: everybody had it while still
a member, so nobody had ordered anything without us (GAP 36). Many queries share one. The others read the green state as
it is here, at once or from a position on; a dirty one sees also what is red. Whatever they show of the
order is durable before they are told: what a client has seen is never undone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from greenline.kernel.actions import OutcomeOf
from greenline.kernel.database import Overlay, Query, Rows
from greenline.kernel.effects import Effect, Trace, Upcall
from greenline.kernel.ports import Service
from greenline.replication.applying import Applying, ask
from greenline.replication.messages import Barrier, Bundle, Meeting
from greenline.replication.outbox import Outbox
from greenline.replication.port import Answer, Ask, BundleId, Reads, Refused, Where, is_sound
from greenline.replication.replica import Replica, red_order
from greenline.replication.requests import why_closed

NO_PRIMARY = "there is no primary component here; ask elsewhere, or for less"


@dataclass(slots=True)
class Queries:
    strict: deque[Ask] = field(default_factory=deque)
    """Waiting for a barrier to be made."""
    behind: deque[Ask] = field(default_factory=deque)
    """Waiting for the barrier that is on its way, in this meeting and under this number."""
    meeting: Meeting | None = None
    number: int = 0
    ready: list[tuple[int, int, Ask]] = field(default_factory=list)
    """A heap: waiting for this position to be applied, in the order in which they came."""
    came: int = 0
    asked: dict[int, tuple[Ask, int]] = field(default_factory=dict)
    """With the database, by call, with the number of bundles on top of the green state."""
    overlay: tuple[object, ...] = ()
    """What the overlay was last made of."""

    def __len__(self) -> int:
        return len(self.strict) + len(self.behind) + len(self.ready) + len(self.asked)

    @property
    def are_waiting(self) -> bool:
        """Is there anything that the next event may bring forward?"""
        return bool(self.strict or self.behind or self.ready)

    def wait_for(self, position: int, call: Ask) -> None:
        self.came += 1
        heappush(self.ready, (position, self.came, call))


def on_ask(replica: Replica, queries: Queries, call: Ask, is_primary: bool, out: list[Effect]) -> None:
    why = why_closed(replica)
    if why is None and not is_sound(call.request, bytes | OutcomeOf):
        why = f"{call.request!r} is no question that can be asked"
    if why is None and len(queries) >= replica.settings.buffered:
        why = f"{len(queries)} queries wait already; try again later"
    if why is None and not call.is_patient:
        why = _why_impatient(replica, call, is_primary)
    if why is not None:
        out.append(Upcall(Refused(call.ticket, why)))
    elif call.reads is Reads.STRICT:
        queries.strict.append(call)
    else:
        queries.wait_for(call.after if call.reads is Reads.SESSION else 0, call)


def _why_impatient(replica: Replica, call: Ask, is_primary: bool) -> str | None:
    if call.reads is Reads.STRICT and not is_primary:
        return NO_PRIMARY
    if call.reads is Reads.SESSION and call.after > replica.green:
        return f"position {call.after} is not known here yet, only {replica.green}; ask elsewhere, or wait"
    return None


def refuse_all(queries: Queries, why: str, out: list[Effect]) -> None:
    waiting = [*queries.strict, *queries.behind, *(call for _, _, call in sorted(queries.ready))]
    out.extend(Upcall(Refused(call.ticket, why)) for call in waiting)
    queries.strict.clear()
    queries.behind.clear()
    queries.ready.clear()


def make_barrier(
    replica: Replica, queries: Queries, outbox: Outbox, meeting: Meeting | None, out: list[Effect]
) -> None:
    """One for all that wait, in the meeting of a primary component (`meeting`); what was left of another is void."""
    if queries.behind and queries.meeting != meeting:
        queries.strict.extendleft(reversed(queries.behind))
        queries.behind.clear()
    if meeting is None:
        _refuse_the_impatient(queries, out)
        return
    if not queries.strict or queries.behind:
        return
    queries.number += 1
    queries.meeting = meeting
    queries.behind, queries.strict = queries.strict, queries.behind
    outbox.say(Barrier(meeting, replica.me, queries.number), Service.SAFE)


def _refuse_the_impatient(queries: Queries, out: list[Effect]) -> None:
    out.extend(Upcall(Refused(call.ticket, NO_PRIMARY)) for call in queries.strict if not call.is_patient)
    queries.strict = deque(call for call in queries.strict if call.is_patient)


def on_barrier(replica: Replica, queries: Queries, barrier: Barrier, out: list[Effect]) -> None:
    """Delivered in the regular configuration of the component that it was made in."""
    if barrier.server == replica.me and queries.meeting == barrier.meeting and queries.number == barrier.number:
        out.append(Trace("barrier", position=replica.green))
        while queries.behind:
            queries.wait_for(replica.green, queries.behind.popleft())


def ask_database(replica: Replica, queries: Queries, applying: Applying, accepted: int, out: list[Effect]) -> None:
    """Whatever has waited long enough. Our own bundles up to the index `accepted` are on our disk."""
    while applying.is_open and queries.ready and queries.ready[0][0] <= applying.applied:
        _, _, call = heappop(queries.ready)
        reds = lay_over(replica, queries, applying, accepted, out) if call.reads is Reads.DIRTY else 0
        number = ask(applying, Query(call.request, is_dirty=call.reads is Reads.DIRTY), out)
        queries.asked[number] = call, reds


def lay_over(replica: Replica, queries: Queries, applying: Applying, accepted: int, out: list[Effect]) -> int:
    """Give the database what dirty queries are to see on top of what it has, if that has changed; how much it is."""
    made_of = (applying.asked, replica.green, sum(replica.red_cut.values()), accepted, replica.yellow, replica.roster)
    bundles = _on_top(replica, applying.asked, accepted)
    if made_of != queries.overlay:
        queries.overlay = made_of
        ask(applying, Overlay(tuple(_body(replica, each).actions for each in bundles)), out)
    return len(bundles)


def _body(replica: Replica, bundle: BundleId) -> Bundle:
    return replica.bodies[bundle] if bundle in replica.bodies else replica.ongoing[bundle.index]


def _on_top(replica: Replica, position: int, accepted: int) -> list[BundleId]:
    """What is green after this position, then yellow, then red, in the order in which it would be installed; then our
    own that are on their way: whoever was told that something is accepted finds it."""
    yellow = [each for each in replica.yellow.ids if not replica.is_green(each)]
    reds = sorted(set(replica.reds()).difference(yellow), key=lambda each: red_order(replica, each))
    ongoing = [each.id for each in replica.ongoing.values() if each.index <= accepted and not replica.has(each.id)]
    bundles = [*replica.order[position - replica.low :], *yellow, *reds, *ongoing]
    return [each for each in bundles if not replica.roster.is_void(each.creator)]


def on_rows(replica: Replica, queries: Queries, call: int, answer: Rows, where: Where, out: list[Effect]) -> None:
    """Tell it, once all that it shows of the order is durable."""
    asked, reds = queries.asked.pop(call)
    gate = None if answer.position <= replica.durable_green else replica.tickets
    told = Answer(asked.ticket, answer.rows, answer.outcome, answer.position, reds, asked.reads, where)
    out.append(Upcall(told, gate=gate))


def refuse(queries: Queries, call: int, reason: str, out: list[Effect]) -> None:
    """The database cannot answer this one."""
    asked, _ = queries.asked.pop(call)
    out.append(Upcall(Refused(asked.ticket, reason, is_retriable=False)))
