"""Engines with one mistake each about queries: what they may see, and when (thesis 7.1, Amir & Tutu 6, GAP 36, 37)."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from greenline.database.memory import MemorySqlite
from greenline.database.session_tables import Execute, Sessions
from greenline.kernel.actions import Action, Outcome
from greenline.kernel.database import Answer, Overlay, Query, Rows
from greenline.kernel.database import Ask as DatabaseAsk
from greenline.kernel.effects import Effect, Upcall
from greenline.kernel.ports import Service
from greenline.replication import answers, core, invariants, queries
from greenline.replication.applying import Applying, ask
from greenline.replication.core import Engine, Phase
from greenline.replication.messages import Barrier, Meeting
from greenline.replication.outbox import Outbox
from greenline.replication.port import Ask, Reads, Where
from greenline.replication.queries import Queries, lay_over, on_barrier
from greenline.replication.replica import Replica
from greenline.replication.told import Told
from greenline.replication.transprim import TransPrim
from greenline.simulation.mutants.mutant import Seeded, in_force

_mutant = Seeded(invariants)

# Strict queries.

_right_ask = queries.on_ask


def _at_once(mine: Replica, asked: Queries, call: Ask, is_primary: bool, out: list[Effect]) -> None:
    _right_ask(mine, asked, call, is_primary, out)
    while asked.strict:
        asked.wait_for(mine.green, asked.strict.popleft())


_mutant(
    "strict-without-a-barrier",
    "answers a strict query from the green state that it has, without asking whether it is still in the component",
    (core, "on_ask", _at_once),
)


def _in_a_component(mine: Replica, asked: Queries, call: Ask, is_primary: bool, out: list[Effect]) -> None:
    _right_ask(mine, asked, call, is_primary, out)
    while asked.strict and is_primary:
        asked.wait_for(mine.green, asked.strict.popleft())


_mutant(
    "strict-in-what-it-takes-for-a-component",
    "answers a strict query at once while it takes itself to be in a primary component (GAP 36)",
    (core, "on_ask", _in_a_component),
    scenario="REPL-63",
)

_right_barrier = queries.make_barrier


def _agreed(mine: Replica, asked: Queries, outbox: Outbox, meeting: Meeting | None, out: list[Effect]) -> None:
    _right_barrier(mine, asked, outbox, meeting, out)
    if outbox.waiting and isinstance(outbox.waiting[-1].message, Barrier):
        outbox.waiting[-1] = dataclasses.replace(outbox.waiting[-1], service=Service.AGREED)


_mutant(
    "barrier-is-only-agreed",
    "takes a barrier that others may not have heard for the word that they are still with us (GAP 36)",
    (core, "make_barrier", _agreed),
    scenario="REPL-63",
)


def _never_void(mine: Replica, asked: Queries, outbox: Outbox, meeting: Meeting | None, out: list[Effect]) -> None:
    """What waits for a barrier goes on waiting for it when the meeting is over, if there is no other yet."""
    if meeting is not None:
        _right_barrier(mine, asked, outbox, meeting, out)


def _counts_in_transition(self: TransPrim, told: Told, out: list[Effect]) -> Any:
    if isinstance(told, Barrier):
        on_barrier(self.server.replica, self.server.queries, told, out)
        return None
    return _right_trans(self, told, out)


_right_trans = TransPrim.handle

_mutant(
    "barrier-counts-in-transition",
    "takes a barrier that is delivered in the transitional configuration for one of the regular (GAP 36)",
    (core, "make_barrier", _never_void),
    (TransPrim, "handle", _counts_in_transition),
    scenario="REPL-63",
)


def _counts_anywhere(self: Engine, phase: Phase, told: Told, out: list[Effect]) -> None:
    if isinstance(told, Barrier):
        on_barrier(phase.server.replica, phase.server.queries, told, out)
    else:
        _right_tell(self, phase, told, out)


_right_tell = Engine._tell

_mutant(
    "barrier-of-another-meeting",
    "takes a barrier of a meeting that is over for one of the present (GAP 36)",
    (core, "make_barrier", _never_void),
    (Engine, "_tell", _counts_anywhere),
    scenario="REPL-63",
)

# The others.


def _without_a_token(mine: Replica, asked: Queries, call: Ask, is_primary: bool, out: list[Effect]) -> None:
    _right_ask(mine, asked, msgspec.structs.replace(call, after=0), is_primary, out)


_mutant(
    "session-ignores-its-token",
    "answers a session query from what it has, whatever the session has seen",
    (core, "on_ask", _without_a_token),
)


def _weak_is_dirty(mine: Replica, asked: Queries, applying: Applying, accepted: int, out: list[Effect]) -> None:
    """As `ask_database` does, but weak queries see what is red."""
    while applying.is_open and asked.ready and asked.ready[0][0] <= applying.applied:
        call = asked.ready.pop(0)[2]
        asked.ready.sort()
        is_dirty = call.reads in (Reads.DIRTY, Reads.WEAK)
        reds = lay_over(mine, asked, applying, accepted, out) if is_dirty else 0
        asked.asked[ask(applying, Query(call.request, is_dirty=is_dirty), out)] = call, reds


_mutant(
    "weak-is-dirty",
    "shows what is red to queries that asked for the green state",
    (core, "ask_database", _weak_is_dirty),
)


def _deleted_at_the_first_green(
    mine: Replica, asked: Queries, applying: Applying, accepted: int, out: list[Effect]
) -> int:
    """What is on top is thrown away when the green state moves on, until something else is red."""
    made_of = asked.overlay
    if made_of and made_of[1] != mine.green and made_of[2] == sum(mine.red_cut.values()):
        ask(applying, Overlay(()), out)
        return 0
    return _right_over(mine, asked, applying, accepted, out)


_right_over = queries.lay_over

_mutant(
    "reds-are-gone-with-the-first-green",
    "shows a dirty query nothing that is red any more once one of them is green (GAP 37)",
    (queries, "lay_over", _deleted_at_the_first_green),
    scenario="REPL-58",
)


MUTANTS = _mutant.mutants


def _before_it_is_durable(
    mine: Replica, asked: Queries, call: int, answer: Rows, where: Where, out: list[Effect]
) -> None:
    before = len(out)
    _right_rows(mine, asked, call, answer, where, out)
    out[before:] = [Upcall(each.payload) if isinstance(each, Upcall) else each for each in out[before:]]


_right_rows = queries.on_rows

_mutant(
    "shows-what-is-not-durable",
    "answers queries from greens that a crash can take back",
    (answers, "on_rows", _before_it_is_durable),
    scenario="REPL-102",
)


def _executed(_: Sessions, action: Action, position: int, sub: int, execute: Execute) -> Outcome:
    return Outcome(*execute(action), position, sub)


class _LaysOverEveryCopy(MemorySqlite):
    """What is on top of the green state is executed, whether it was decided before or not."""

    def answer(self, request: DatabaseAsk) -> Answer:
        is_dirty = isinstance(request, Query) and request.is_dirty
        with in_force(((Sessions, "decide", _executed),) if is_dirty else ()):
            return super().answer(request)


_mutant(
    "dirty-counts-duplicates-twice",
    "shows a dirty query the effect of a red request that was decided already, or stands there twice, once more",
    database=_LaysOverEveryCopy,
    scenario="REPL-103",
)
