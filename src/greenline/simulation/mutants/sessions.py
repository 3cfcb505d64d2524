"""Databases with one mistake each about sessions: what is decided once, what is kept of it, and for how long."""

from __future__ import annotations

import msgspec

from greenline.database import session_tables, sessions, snapshots, state
from greenline.database.memory import MemorySqlite
from greenline.database.session_tables import Execute, Sessions
from greenline.database.sessions import Interval, Session, Step
from greenline.database.snapshots import Snapshot
from greenline.database.state import State
from greenline.kernel.actions import Action, Outcome, Verdict
from greenline.kernel.database import Expire
from greenline.replication import invariants, roster
from greenline.replication.roster import Changed, Roster
from greenline.simulation.mutants.mutant import Patch, Seeded, database_with

_mutant = Seeded(invariants)

# What is decided.


def _steps(**wrong: Step) -> Patch:
    """Where a request would be answered so, something else is done."""

    def step_of(number: int, session: Session) -> Step | Verdict:
        step = _right_step(number, session)
        return wrong.get(step.name, step)

    return session_tables, "step_of", step_of


_right_step = sessions.step_of


def _keep_the_last(self: Sessions, action: Action, kept: Outcome) -> None:
    self._db.execute("DELETE FROM outcomes WHERE session = ? AND number = ?", (action.session, action.number))
    _right_keep(self, action, kept)


_right_keep = Sessions._keep

_mutant(
    "duplicates-are-executed-again",
    "executes a request again when it is asked again",
    database=database_with(_steps(REPEAT=Step.DECIDE), (Sessions, "_keep", _keep_the_last)),
)


def _if_there_is_one(self: Sessions, session: str, number: int) -> Outcome:
    kept = self._db.execute("SELECT 1 FROM outcomes WHERE session = ? AND number = ?", (session, number)).fetchone()
    return Outcome(Verdict.RELEASED) if kept is None else _right_outcome(self, session, number)


_right_outcome = Sessions._outcome

_mutant(
    "gaps-are-executed",
    "decides a request though the one before it is not decided",
    database=database_with(_steps(EARLY=Step.DECIDE), (Sessions, "_outcome", _if_there_is_one)),
)
_mutant(
    "everything-is-kept",
    "decides as many requests as a client asks for, though it never says what it has received",
    database=database_with(_steps(CROWDED=Step.DECIDE)),
    scenario="ACC-86",
)
_mutant(
    "released-are-executed-again",
    "takes a request whose outcome is released for one that was never decided",
    database=database_with(_steps(RELEASED=Step.DECIDE), (Sessions, "_keep", _keep_the_last)),
)


def _without_its_check(self: State, action: Action) -> tuple[Verdict, bytes]:
    return _right_execute(self, msgspec.structs.replace(action, reads=()))


_right_execute = State._execute

_mutant(
    "reads-are-not-checked",
    "executes an interactive action without asking whether what it read still stands",
    database=database_with((State, "_execute", _without_its_check)),
)

# What who asks again is told.


def _decided(wrong: object) -> Patch:
    return Sessions, "decide", wrong


_right_decide = Sessions.decide


def _recomputed(self: Sessions, action: Action, position: int, sub: int, execute: Execute) -> Outcome:
    outcome = _right_decide(self, action, position, sub, execute)
    if not outcome.is_again or action.is_relaxed:
        return outcome
    self._db.execute("SAVEPOINT again")
    verdict, value = execute(action)
    self._db.execute("ROLLBACK TO again")
    self._db.execute("RELEASE again")
    return msgspec.structs.replace(outcome, verdict=verdict, value=value)


_mutant(
    "outcomes-are-computed-anew",
    "tells who asks again what the request would come to now",
    database=database_with(_decided(_recomputed)),
)


def _placed_here(self: Sessions, action: Action, position: int, sub: int, execute: Execute) -> Outcome:
    outcome = _right_decide(self, action, position, sub, execute)
    return msgspec.structs.replace(outcome, position=position, sub=sub) if outcome.is_again else outcome


_mutant(
    "repeated-is-decided-here",
    "tells who asks again that it was decided where it was asked again",
    database=database_with(_decided(_placed_here)),
)

# Relaxed requests.


def _add_once(self: Sessions, session: str, number: int, near: list[Interval]) -> None:
    if not any(first <= number <= last for first, last in near):
        _right_add(self, session, number, near)


_right_add = Sessions._add_to_intervals

_mutant(
    "relaxed-are-applied-twice",
    "executes a relaxed request as often as it is asked for, since order does not matter to it",
    database=database_with(
        (session_tables, "relaxed_step_of", lambda *_: Step.DECIDE), (Sessions, "_add_to_intervals", _add_once)
    ),
)


def _up_to_the_last(self: Sessions, session: str, _: int) -> list[Interval]:
    (last,) = self._db.execute("SELECT max(last) FROM intervals WHERE session = ?", (session,)).fetchone()
    return [] if last is None else [(1, last)]


_mutant(
    "relaxed-numbers-are-a-cut",
    "takes a relaxed request for decided once a later one is (GAP 35)",
    database=database_with((Sessions, "_near", _up_to_the_last)),
)

# What is kept, and where.


class _ForgetsAtACrash(MemorySqlite):
    """Sessions are in memory, beside the transaction."""

    def kill(self) -> None:
        super().kill()
        for table in ("sessions", "outcomes", "intervals"):
            self._db.execute(f"DELETE FROM {table}")


_mutant(
    "sessions-are-forgotten-at-a-crash",
    "keeps sessions in memory, so that a life begins without those of the last",
    database=_ForgetsAtACrash,
)


def _without_sessions(self: State, chunk_rows: int) -> Snapshot:
    tables = {table: key for table, key in state.TABLES.items() if table not in ("sessions", "outcomes", "intervals")}
    return snapshots.take(self._db, tables, self.stands(), chunk_rows)


_mutant(
    "snapshot-without-sessions",
    "gives a newcomer the data, and not what was decided for whom",
    database=database_with((State, "snapshot", _without_sessions)),
)


# Expiry.


def _without_a_horizon(self: Sessions, before: int) -> None:
    _right_expire(self, before)
    self._db.execute("UPDATE horizon SET position = 0")


_right_expire = Sessions.expire

_mutant(
    "expiry-without-a-horizon",
    "deletes old sessions and remembers nothing, so that a late duplicate opens its session again",
    database=database_with((Sessions, "expire", _without_a_horizon)),
    scenario="ACC-14",
)


def _ends_at_once(now: Roster, done: Outcome) -> Changed:
    ending = now.ending
    ends = (Expire(ending.before),) if ending is not None else ()
    return Changed(msgspec.structs.replace(now, ending=None), done, ends)


_mutant(
    "sessions-end-before-all-know",
    "lets sessions end where that is ordered, whatever servers that are away have accepted for them",
    (roster, "_ended", _ends_at_once),
    scenario="ACC-89",
)

MUTANTS = _mutant.mutants
