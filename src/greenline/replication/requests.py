"""Requests: submissions into bundles, and bundles into replies.

Everything that was submitted while the last body was on its way to the disk goes into one bundle: one index, one log
record, one multicast (A.1, A.2, A.8). Bundles are made only where the state allows it; until then
submissions wait in one line, so that a client's second never overtakes its first (GAP 10).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from greenline.kernel.actions import declared
from greenline.kernel.database import Applied
from greenline.kernel.effects import Effect, Trace, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.knowledge import has_quorum
from greenline.replication.messages import Bundle
from greenline.replication.outbox import Outbox
from greenline.replication.port import (
    Accepted,
    BundleId,
    Change,
    Left,
    Level,
    MadeIn,
    Reconfigure,
    Refused,
    Replied,
    Submit,
    Unanswered,
    Where,
    is_sound,
)
from greenline.replication.replica import Replica, content_of, force, keep_body, mark_red


class Generates(Enum):
    """What a state does with a new bundle."""

    SAFE = "sends it, to be green when it is safe"
    AGREED = "sends it, to be red"
    ALONE = "marks it red, and sends nothing: it travels with the next exchange"
    NOT_NOW = "lets it wait"


OWN = 0
"""The ticket of what we ask for ourselves: nobody is told."""


class Asked(NamedTuple):
    """A submission whose actions are in a bundle by now: who asked, for how many outcomes, how durable."""

    ticket: int
    outcomes: int
    level: Level


@dataclass(slots=True)
class Requests:
    where: Where
    waiting: deque[Submit | Reconfigure] = field(default_factory=deque)
    waiting_bytes: int = 0
    forcing: int = 0
    """The gate of the body that is on its way to the disk."""
    accepting: deque[tuple[int, BundleId, tuple[Asked, ...]]] = field(default_factory=deque)
    """Bundles whose bodies are not durable yet, with their gates."""
    alone: deque[tuple[int, Bundle]] = field(default_factory=deque)
    """Bundles to be marked red without being sent, with their gates."""
    answering: dict[int, tuple[Asked, ...]] = field(default_factory=dict)
    """By the index of our bundle: who waits for its outcomes."""
    for_quorum: deque[Replied] = field(default_factory=deque)
    """Applied, and waiting for the disks of a quorum."""


def submit(replica: Replica, requests: Requests, call: Submit, out: list[Effect]) -> None:
    limit = replica.settings.bundle_bytes
    if (closed := why_closed(replica)) is not None:
        out.append(Upcall(Refused(call.ticket, closed)))
    elif (odd := _why_odd(call)) is not None:
        out.append(Upcall(Refused(call.ticket, odd, is_retriable=False)))
    elif len(call.actions) > limit:
        reason = f"{len(call.actions)} bytes of actions are more than the {limit} that a bundle holds; submit fewer"
        out.append(Upcall(Refused(call.ticket, reason, is_retriable=False)))
    elif (full := _why_full(replica, requests)) is not None:
        out.append(Upcall(Refused(call.ticket, full)))
    else:
        requests.waiting.append(call)
        requests.waiting_bytes += len(call.actions)


def _why_odd(call: Submit) -> str | None:
    """Outcomes are told apart by their number: one more or less would be another's. They are not opened here."""
    count = declared(call.actions)
    return None if count == call.count else f"these are {count} actions, not {call.count}"


def reconfigure(replica: Replica, requests: Requests, call: Reconfigure, out: list[Effect]) -> None:
    if not is_sound(call.change, Change):
        odd = f"{call.change!r} is no change that servers can read; look at its names and numbers"
        out.append(Upcall(Refused(call.ticket, odd, is_retriable=False)))
    elif (why := why_closed(replica) or _why_full(replica, requests)) is not None:
        out.append(Upcall(Refused(call.ticket, why)))
    else:
        requests.waiting.append(call)


def reconfigure_ourselves(requests: Requests, change: Change) -> None:
    requests.waiting.append(Reconfigure(OWN, change, Level.MEMORY))


def why_closed(replica: Replica) -> str | None:
    """Why nothing can be asked here."""
    if replica.is_new:
        return "this server is joining, and has nothing yet; ask another"
    if replica.has_left:
        return "this server has left the cluster; ask another"
    return None


def close(replica: Replica, requests: Requests, out: list[Effect]) -> None:
    """Our own leave is green: what was ordered before it is answered as ever, of the rest we tell nobody anything.

    So nothing that we learn after our leave is known outside, and nobody needs us for it.
    """
    position = left_at(replica)
    after = {bundle.index for bundle in replica.order[max(0, position - replica.low) :] if bundle.creator == replica.me}
    for index in [each for each in requests.answering if each in after or not replica.is_green(own(replica, each))]:
        give_up(requests, index, "this server has left the cluster", out)
    requests.accepting = deque(each for each in requests.accepting if each[1].index in requests.answering)
    left = "this server has left the cluster; ask another"
    out.extend(Upcall(Refused(call.ticket, left)) for call in requests.waiting if call.ticket != OWN)
    requests.waiting.clear()
    requests.waiting_bytes = 0
    out.extend(Upcall(Unanswered(answer.ticket, left)) for answer in requests.for_quorum)
    requests.for_quorum.clear()


def left_at(replica: Replica) -> int:
    if replica.removed_at is not None:
        return replica.removed_at
    gone = replica.roster.gone_of(replica.me)
    assert gone is not None, "we have left"
    return gone.position


def tell_left(replica: Replica, out: list[Effect]) -> None:
    """Nobody can need us any more."""
    position = left_at(replica)
    out.append(Trace("left", position=position))
    out.append(Upcall(Left(position)))


def own(replica: Replica, index: int) -> BundleId:
    return BundleId(replica.me, index)


def give_up(requests: Requests, index: int, why: str, out: list[Effect]) -> None:
    """This server will not learn what became of this bundle of its own."""
    out.extend(Upcall(Unanswered(call.ticket, why)) for call in requests.answering.pop(index))


def give_up_green(replica: Replica, requests: Requests, position: int, out: list[Effect]) -> None:
    """Our database was given the state at a position: it does not tell what came of our bundles up to there."""
    after = {bundle.index for bundle in replica.order[position - replica.low :] if bundle.creator == replica.me}
    for index in [each for each in requests.answering if replica.is_green(own(replica, each)) and each not in after]:
        give_up(requests, index, "this server was given the outcome with everything else, in a snapshot", out)


def _why_full(replica: Replica, requests: Requests) -> str | None:
    """Why nothing more is taken for now: what waits here is bounded, whatever the network does."""
    settings = replica.settings
    if len(requests.waiting) >= settings.buffered or requests.waiting_bytes >= settings.buffered_bytes:
        return f"{len(requests.waiting)} submissions wait to be bundled already; try again later"
    unordered = sum(replica.red_cut.values()) - sum(replica.green_cut.values())
    if unordered >= settings.unordered or replica.red_bytes >= settings.unordered_bytes:
        return f"{unordered} bundles wait here for a primary component already; try again when there is one"
    return None


def make_bundles(replica: Replica, requests: Requests, outbox: Outbox, generates: Generates, out: list[Effect]) -> None:
    """Bundle what waits, if the state allows it, the last body is on disk, and not too many are on their way."""
    while (
        requests.waiting
        and generates is not Generates.NOT_NOW
        and requests.forcing <= replica.durable_ticket
        and len(replica.ongoing) < replica.settings.ongoing
    ):
        _make_bundle(replica, requests, outbox, generates, out)
    on_disk(replica, requests, out)


def _make_bundle(replica: Replica, requests: Requests, outbox: Outbox, generates: Generates, out: list[Effect]) -> None:
    taken = _take_together(requests, replica.settings.bundle_bytes)
    together = tuple(_asked(call) for call in taken if call.ticket != OWN)
    where = requests.where
    replica.index += 1
    replica.lamport += 1
    bundle = Bundle(
        replica.me,
        replica.index,
        replica.lamport,
        replica.durable_green,
        tuple(call.actions for call in taken if isinstance(call, Submit)),
        wants_lines=any(call.level is Level.QUORUM for call in together),
        change=next((call.change for call in taken if isinstance(call, Reconfigure)), None),
        made_in=MadeIn(where.is_primary, where.prim_index, where.members),
    )
    replica.ongoing[bundle.index] = bundle
    replica.announced = bundle.durable_green
    requests.answering[bundle.index] = together
    actions = sum(call.count for call in taken if isinstance(call, Submit))
    out.append(Trace("create", message=bundle.id, sub=actions, digest=f"{content_of(bundle):08x}"))
    keep_body(replica, bundle, out)
    gate = requests.forcing = force(replica, out)  # before it is sent: an index must never be used twice
    requests.accepting.append((gate, bundle.id, together))
    if generates is Generates.ALONE:
        requests.alone.append((gate, bundle))
    else:
        outbox.say(bundle, Service.SAFE if generates is Generates.SAFE else Service.AGREED, gate)


def _asked(call: Submit | Reconfigure) -> Asked:
    return Asked(call.ticket, call.count if isinstance(call, Submit) else 1, call.level)


def _take_together(requests: Requests, limit: int) -> list[Submit | Reconfigure]:
    """Submissions as many as fit; a change of the cluster stands alone."""
    waiting = requests.waiting
    first = waiting.popleft()
    taken = [first]
    if isinstance(first, Reconfigure):
        return taken
    size = len(first.actions)
    while waiting and isinstance(following := waiting[0], Submit) and size + len(following.actions) <= limit:
        taken.append(waiting.popleft())
        size += len(following.actions)
    requests.waiting_bytes -= size
    return taken


def accepted(replica: Replica, requests: Requests) -> int:
    """The index of our last bundle that is on our disk, as far as anybody was told."""
    return requests.accepting[0][1].index - 1 if requests.accepting else replica.index


def on_disk(replica: Replica, requests: Requests, out: list[Effect]) -> None:
    """Tell those whose bundle is durable by now that it is accepted."""
    while requests.accepting and requests.accepting[0][0] <= replica.durable_ticket:
        gate, bundle, together = requests.accepting.popleft()
        out.extend(Upcall(Accepted(call.ticket, bundle, requests.where), gate=gate or None) for call in together)
    while requests.alone and requests.alone[0][0] <= replica.durable_ticket:
        _mark_alone(replica, requests, out)


def mark_alone(replica: Replica, requests: Requests, out: list[Effect]) -> None:
    """A meeting begins: the barrier that our State waits for covers these too."""
    while requests.alone:
        _mark_alone(replica, requests, out)


def _mark_alone(replica: Replica, requests: Requests, out: list[Effect]) -> None:
    is_next = mark_red(replica, requests.alone.popleft()[1], "NonPrim", out)
    assert is_next, "made alone while an earlier one was on its way"


def reply(replica: Replica, requests: Requests, bundle: BundleId, applied: Applied, out: list[Effect]) -> None:
    """A bundle was applied: each of our submissions in it gets its outcomes, once they are as durable as it asked."""
    if bundle.creator != replica.me or bundle.index not in requests.answering:
        return
    sub = 0
    change = replica.changes.get(applied.position)
    replies = applied.replies if change is None else (change.outcome,)
    for call in requests.answering.pop(bundle.index):
        outcomes = replies[sub : sub + call.outcomes]
        answer = Replied(call.ticket, applied.position, sub, outcomes, call.level, requests.where)
        sub += call.outcomes
        match call.level:
            case Level.MEMORY:
                out.append(Upcall(answer))
            case Level.LOCAL:
                is_durable = applied.position <= replica.durable_green
                out.append(Upcall(answer, gate=None if is_durable else replica.tickets))
            case Level.QUORUM:
                requests.for_quorum.append(answer)
                replica.is_line_raised = True  # the lines may be there already


def reply_to_quorum(replica: Replica, requests: Requests, out: list[Effect]) -> None:
    """Green lines have risen: answer those whose position a quorum of the component has on disk."""
    while requests.for_quorum and _is_at_quorum(replica, requests.for_quorum[0].position):
        out.append(Upcall(requests.for_quorum.popleft()))


def _is_at_quorum(replica: Replica, position: int) -> bool:
    on_disk: set[ProcId] = {server for server, line in replica.green_lines.items() if line >= position}
    return replica.me in on_disk and has_quorum(on_disk, replica.prim)
