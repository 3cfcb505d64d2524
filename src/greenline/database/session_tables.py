"""The sessions of a replica, in tables of its database: changed in the transaction of the bundle that changes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from greenline.database.sessions import (
    LARGEST,
    Interval,
    Session,
    Step,
    heard,
    merged,
    relaxed_step_of,
    step_of,
    to_be_kept,
    unborn_or_over,
)
from greenline.kernel.actions import DECIDED, Action, Outcome, OutcomeOf, Verdict

SCHEMA = """
CREATE TABLE sessions (
    name TEXT PRIMARY KEY, last INTEGER NOT NULL, received INTEGER NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE outcomes (
    session TEXT NOT NULL, number INTEGER NOT NULL, verdict TEXT NOT NULL, value BLOB NOT NULL,
    position INTEGER NOT NULL, sub INTEGER NOT NULL, is_whole INTEGER NOT NULL, PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE intervals (
    session TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (session, first)
) WITHOUT ROWID;
CREATE TABLE horizon (position INTEGER PRIMARY KEY);
INSERT INTO horizon VALUES (0);
"""
TABLES = {"sessions": 1, "outcomes": 2, "intervals": 2, "horizon": 1}
"""With the number of columns, the first ones, that are the key."""

Execute = Callable[[Action], tuple[Verdict, bytes]]


class Sessions:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def decide(self, action: Action, position: int, sub: int, execute: Execute) -> Outcome:
        """What a request at this place comes to: `execute` runs it, if it is here that it is decided."""
        known = self._session(action.session)
        if known is None and (late := unborn_or_over(action.session, self._horizon(), position)) is not None:
            return Outcome(late)
        before = known or Session()
        session = heard(before, action, position)
        if session.received > before.received:
            self._release(action.session, session.received)
        near = self._near(action.session, action.number) if action.is_relaxed else []
        match relaxed_step_of(action.number, near) if action.is_relaxed else step_of(action.number, session):
            case Step.DECIDE:
                outcome = Outcome(*execute(action), position, sub)
                if action.is_relaxed and outcome.verdict is Verdict.DONE:
                    self._add_to_intervals(action.session, action.number, near)
                elif not action.is_relaxed:
                    session = Session(action.number, session.received, position)
                    self._keep(action, to_be_kept(outcome))
            case Step.REPEAT:
                outcome = _DECIDED_BEFORE if action.is_relaxed else self._outcome(action.session, action.number)
            case verdict:
                outcome = Outcome(verdict)
        if known or outcome.verdict in DECIDED:
            self._store(action.session, session)
        return outcome

    def outcome_of(self, asked: OutcomeOf, position: int) -> Outcome:
        session = self._session(asked.session)
        if session is None:
            is_over = unborn_or_over(asked.session, self._horizon(), position) is Verdict.EXPIRED
            return Outcome(Verdict.EXPIRED if is_over else Verdict.UNKNOWN)
        if asked.is_relaxed:
            is_decided = relaxed_step_of(asked.number, self._near(asked.session, asked.number)) is Step.REPEAT
            return _DECIDED_BEFORE if is_decided else Outcome(Verdict.UNKNOWN)
        match step_of(asked.number, session):
            case Step.REPEAT:
                return self._outcome(asked.session, asked.number)
            case Verdict.RELEASED:
                return Outcome(Verdict.RELEASED)
            case _:
                return Outcome(Verdict.UNKNOWN)

    def expire(self, before: int) -> None:
        """The horizon never falls. Nothing is left of who is over: its name tells."""
        horizon = max(before, self._horizon())
        self._db.execute("UPDATE horizon SET position = ?", (horizon,))
        for table in ("outcomes", "intervals"):
            self._db.execute(
                f"DELETE FROM {table} WHERE session IN (SELECT name FROM sessions WHERE used < ?)", (horizon,)
            )
        self._db.execute("DELETE FROM sessions WHERE used < ?", (horizon,))

    def _horizon(self) -> int:
        (horizon,) = self._db.execute("SELECT position FROM horizon").fetchone()
        return int(horizon)

    def _session(self, name: str) -> Session | None:
        row = self._db.execute("SELECT last, received, used FROM sessions WHERE name = ?", (name,)).fetchone()
        return None if row is None else Session(*row)

    def _store(self, name: str, session: Session) -> None:
        row = (name, session.last, session.received, session.used)
        self._db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)", row)

    def _outcome(self, session: str, number: int) -> Outcome:
        verdict, value, position, sub, is_whole = self._db.execute(
            "SELECT verdict, value, position, sub, is_whole FROM outcomes WHERE session = ? AND number = ?",
            (session, number),
        ).fetchone()
        return Outcome(Verdict(verdict), value, position, sub, is_again=True, is_whole=bool(is_whole))

    def _keep(self, action: Action, kept: Outcome) -> None:
        identity, place = (action.session, action.number), (kept.position, kept.sub)
        row = (*identity, kept.verdict.value, kept.value, *place, int(kept.is_whole))
        self._db.execute("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _release(self, session: str, received: int) -> None:
        self._db.execute("DELETE FROM outcomes WHERE session = ? AND number <= ?", (session, received))

    def _near(self, session: str, number: int) -> list[Interval]:
        """The last intervals that begin at the number, before it, or right after it: whatever could touch it."""
        return self._db.execute(
            "SELECT first, last FROM intervals WHERE session = ? AND first <= ? ORDER BY first DESC LIMIT 2",
            (session, min(number, LARGEST) + 1),
        ).fetchall()

    def _add_to_intervals(self, session: str, number: int, near: list[Interval]) -> None:
        interval, replaced = merged(number, near)
        for first, _ in replaced:
            self._db.execute("DELETE FROM intervals WHERE session = ? AND first = ?", (session, first))
        self._db.execute("INSERT INTO intervals VALUES (?, ?, ?)", (session, *interval))


_DECIDED_BEFORE = Outcome(Verdict.DONE, is_again=True)
"""All that is known of a relaxed request that is asked again."""
