"""Engines with one mistake each about replicas that come, go, and weigh more or less (Amir & Tutu 5.1; GAP 24-33)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import msgspec

from greenline.kernel.database import SnapshotBegin
from greenline.kernel.effects import Effect, Trace, Upcall
from greenline.kernel.identities import ProcId
from greenline.replication import (
    admission,
    beside,
    core,
    discarding,
    exchange_actions,
    exchange_states,
    forcing,
    giving,
    invariants,
    joining,
    nonprim,
    plan,
    regprim,
    replica,
    requests,
    roster,
)
from greenline.replication.applying import Applying, ask
from greenline.replication.giving import Giving
from greenline.replication.knowledge import Learned
from greenline.replication.messages import Basis, Bundle, State
from greenline.replication.moves import ToNonPrim
from greenline.replication.nonprim import Farewell, NonPrim
from greenline.replication.outbox import Outbox
from greenline.replication.plan import Plan
from greenline.replication.port import Join, Leave, Left
from greenline.replication.replica import Replica
from greenline.replication.requests import Requests, left_at
from greenline.replication.roster import Roster
from greenline.replication.server import Component, Server
from greenline.simulation.mutants.mutant import Patch, Seeded

_mutant = Seeded(invariants)

_ANY_QUEUE: Patch = (Replica, "queue_digest", lambda _: b"")
"""Or who would install another queue than ours stops, and the mistake hurts nobody."""

# Who counts in a quorum.


def _at_once(mine: Replica, learned: Learned, component: Component) -> bool:
    prim = learned.prim
    now = msgspec.structs.replace(prim, weights=tuple(map(mine.roster.weight_of, prim.servers)))
    return _right_quorum(mine, dataclasses.replace(learned, prim=now), component)


_right_quorum = exchange_actions.is_quorum

_mutant(
    "weights-count-at-once",
    "counts a quorum by the weights of now, and not by those of when the last component was installed (GAP 24, 33)",
    (exchange_actions, "is_quorum", _at_once),
    scenario="REPL-47",
)
_mutant(
    "those-who-left-weigh-nothing",
    "gives a component of which all have left no weight, so that nobody can ever take over from it",
    (Replica, "weights_of", lambda mine, members: tuple(map(mine.roster.weight_of, members))),
    scenario="REPL-85",
)
_mutant(
    "leavers-do-not-agree",
    "leaves who has left out of the next component, though it still counts in the last (GAP 25)",
    (
        exchange_actions,
        "stayers",
        lambda mine, members: tuple(name for name in members if not mine.roster.is_gone(name)),
    ),
    scenario="REPL-85",
)
_mutant(
    "leavers-never-go",
    "takes who has left into every component, so that it is never told that it may stop",
    (exchange_actions, "stayers", lambda _, members: members),
    (regprim, "is_over", lambda mine, component: mine.weights_of(component.members) != mine.prim.weights),
)


def _may_go(mine: Replica, out: list[Effect]) -> None:
    out.append(Trace("left", position=left_at(mine)))
    out.append(Upcall(Left(left_at(mine))))


def _exits_when_green(server: Server, out: list[Effect]) -> None:
    was_closed = server.is_closed
    _right_close_if_left(server, out)
    if server.is_closed and not was_closed:
        _may_go(server.replica, out)


_right_close_if_left = beside.close_if_left

_mutant(
    "leaver-exits-when-its-leave-is-green",
    "tells a server that it may stop when its leave is green there, though the others may need it (GAP 25)",
    (core, "close_if_left", _exits_when_green),
)


def _still_open(mine: Replica) -> str | None:
    return None if mine.has_left else _right_why_closed(mine)


_right_why_closed = requests.why_closed

_mutant(
    "leaver-goes-on-as-ever",
    "accepts and answers after its own leave, until it is stopped",
    (core, "close_if_left", lambda *_: None),
    (requests, "why_closed", _still_open),
)

# What a leaver leaves behind.


def _without_leavers(states: Mapping[ProcId, State]) -> Plan:
    right = _right_plan(states)
    servers = states[right.source].roster if right.source else Roster(())
    return dataclasses.replace(right, reds=tuple(share for share in right.reds if not servers.is_gone(share.creator)))


_right_plan = plan.draw_plan

_mutant(
    "cut-of-the-removed-is-dropped",
    "forgets up to where others have a removed server's bundles, so that they travel no more (GAP 26)",
    (exchange_states, "draw_plan", _without_leavers),
    _ANY_QUEUE,
    scenario="REPL-49",
)
_mutant(
    "leavers-are-void",
    "lets nothing come of what is ordered after its creator's leave, though it was accepted (GAP 26)",
    (Roster, "is_void", Roster.is_gone),
    scenario="REPL-49",
)
_mutant(
    "void-is-ordered-as-ever",
    "lets something come of what was declared void",
    (Roster, "is_void", lambda *_: False),
    scenario="REPL-49",
)


# Who exists.


def _when_red(mine: Replica, bundle: Bundle, out: list[Effect]) -> None:
    _right_keep(mine, bundle, out)
    if isinstance(bundle.change, Join | Leave):
        mine.roster = roster.changed(mine.roster, bundle.change, mine.green, 0).roster


_right_keep = replica.keep_body

_mutant(
    "changes-count-when-red",
    "changes the server set when it hears of a change, and not where that is ordered",
    (replica, "keep_body", _when_red),
)
_mutant(
    "founders-are-everybody",
    "calls white what all founders have on disk, and discards it, whoever has joined since (GAP 29)",
    (
        discarding,
        "white_line",
        lambda mine: min(
            (discarding.line_of(mine, seat) for seat in mine.roster.seats if seat.server in mine.settings.servers),
            default=mine.low,
        ),
    ),
    scenario="REPL-45",
)
_mutant(
    "names-are-used-again",
    "lets a newcomer join under the name of one that has left (GAP 27)",
    (roster, "_why_not_join", lambda *_: None),
    (admission, "_unknown", lambda *_: None),
    scenario="REPL-50",
)
_mutant(
    "the-overruled-are-let-in",
    "meets a server that was declared dead when an operator forced a component (GAP 28)",
    (admission, "overruled", lambda _: {}),
    scenario="REPL-51",
)
_mutant(
    "forces-without-asking-who-is-dead",
    "lets an operator force a component without saying of everybody whether it is dead (GAP 28)",
    (forcing, "why_not", lambda *_: None),
    scenario="REPL-93",
)

# Snapshots.


def _before_the_join(
    mine: Replica, gives: Giving, waiting: Requests, applying: Applying, outbox: Outbox, out: list[Effect]
) -> None:
    _right_serve(mine, gives, waiting, applying, outbox, out)
    for want in list(gives.wants.values()):
        if mine.roster.seat_of(want.server) is not None:
            continue
        if gives.held is not None and gives.held.position >= mine.low:
            del gives.wants[want.server]
            giving._say_manifest(mine, gives, outbox, want)
        elif not gives.is_asked and applying.is_open:
            gives.is_asked = True
            ask(applying, SnapshotBegin(), out)


_right_serve = giving.serve

_mutant(
    "gives-before-the-join",
    "gives a newcomer a snapshot before its join is green (GAP 32)",
    (beside, "serve", _before_the_join),
)


def _basis_without_its_cut(mine: Replica, position: int) -> Basis:
    return msgspec.structs.replace(_right_basis(mine, position), cut=())


_right_basis = giving.basis_at

_mutant(
    "snapshot-without-its-cut",
    "gives a snapshot without saying up to where it holds each creator's bundles (GAP 30)",
    (giving, "basis_at", _basis_without_its_cut),
)
_mutant(
    "snapshot-with-an-old-roster",
    "gives a snapshot with the servers of where its log begins, and not of the snapshot's position (GAP 29)",
    (giving, "roster_at", lambda mine, _: mine.low_roster),
)
_mutant(
    "snapshot-with-the-roster-of-now",
    "gives a snapshot with the servers of its green line, and not of the snapshot's position (GAP 29)",
    (giving, "roster_at", lambda mine, _: mine.roster),
)


def _forgets_beyond(mine: Replica, basis: Basis) -> None:
    mine.red_cut, mine.bodies = {}, {}
    mine.ongoing, mine.index = {}, 0
    _right_begin(mine, basis)


_right_begin = joining._begin_queue_at

_mutant(
    "forgets-what-is-beyond-its-snapshot",
    "takes a snapshot over and forgets what it had accepted beyond it",
    (joining, "_begin_queue_at", _forgets_beyond),
    scenario="REPL-86",
)

MUTANTS = _mutant.mutants


def _farewell_at_once(server: Server, move: ToNonPrim, out: list[Effect]) -> tuple[NonPrim, None]:
    phase, _ = _right_nonprim(server, move, out)
    if isinstance(phase.way, Farewell):
        _may_go(server.replica, out)
    return phase, None


_right_nonprim = nonprim.enter

_mutant(
    "leaver-exits-before-the-others-agree",
    "tells a server that it may stop before the component without it is on anybody's disk (GAP 25)",
    (nonprim, "enter", _farewell_at_once),
    scenario="REPL-101",
)


def _begins_with_the_epoch(mine: Replica, basis: Basis) -> None:
    was_new = mine.is_new
    _right_begin_queue_at(mine, basis)
    if was_new:
        mine.prim = msgspec.structs.replace(mine.prim, epoch=basis.era.epoch)


_right_begin_queue_at = joining._begin_queue_at

_mutant(
    "newcomers-speak-for-components",
    "lets a newcomer, who was in no component, say which was the last one after a force (GAP 28)",
    (joining, "_begin_queue_at", _begins_with_the_epoch),
    scenario="REPL-100",
)
_mutant(
    "too-late-is-not-heard",
    "goes with those who were declared dead, if it heard of it while the configuration changed (GAP 28)",
    (forcing, "beware", lambda *_: None),
    scenario="REPL-104",
)
