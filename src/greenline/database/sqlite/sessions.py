"""Sessions as this adapter keeps them: in memory while they are used, and in one row each, written once a bundle.

The rules are those of `database.sessions`, in a form that costs little for the usual request, which is the next one
of a session that is known. A row holds what the last requests came to, up to `WINDOW` of them; what is large is not
kept, only its verdict.
"""

from __future__ import annotations

import apsw
import msgspec

from greenline.database.sessions import LARGEST, STORED_BYTES, unborn_or_over
from greenline.database.sqlite import tables
from greenline.database.sqlite.connection import OURS
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import WINDOW, Action, Outcome, OutcomeOf, Verdict

SMALL = 256
"""Bytes of an outcome that are kept in any case. Runs come to less, so that it does not matter when they are kept."""

_SELECT = "SELECT last, received, used, outcomes FROM greenline_sessions WHERE name = ?"
_REPLACE = "INSERT OR REPLACE INTO greenline_sessions VALUES (?, ?, ?, ?, ?)"
_EXPIRE = "DELETE FROM greenline_sessions WHERE used < ?"


class Known:
    """One session. Outcomes are kept for the numbers after `received`, up to `last`."""

    __slots__ = ("kept", "kept_bytes", "last", "name", "received", "used")

    def __init__(self, name: str, last: int = 0, received: int = 0, used: int = 0) -> None:
        self.name = name
        self.last = last
        self.received = received
        self.used = used
        self.kept: dict[int, Outcome] = {}
        self.kept_bytes = 0

    def release(self, received: int) -> None:
        """The client has the outcomes up to this number."""
        kept, number = self.kept, self.received
        while number < received and number < self.last:
            number += 1
            if number in kept:
                self.kept_bytes -= len(kept.pop(number).value)
        self.received = number

    def keep(self, number: int, outcome: Outcome, most: int) -> None:
        if number <= self.received:
            return
        size = len(outcome.value)
        if size > SMALL and (size > STORED_BYTES or self.kept_bytes + size > most):
            outcome = Outcome(outcome.verdict, b"", outcome.position, outcome.sub, is_whole=False)
        self.kept[number] = outcome
        self.kept_bytes += len(outcome.value)

    def in_order(self) -> list[Outcome]:
        return [self.kept[number] for number in range(self.received + 1, self.last + 1)]

    def again(self, number: int) -> Outcome:
        kept = self.kept[number]
        return Outcome(kept.verdict, kept.value, kept.position, kept.sub, is_again=True, is_whole=kept.is_whole)


class Sessions:
    def __init__(self, connection: apsw.Connection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._known: dict[str, Known] = {}
        self.used: dict[str, Known] = {}
        """By the bundle that is being applied: their rows are to be written."""
        self._horizon: int | None = None

    def hear(self, action: Action, position: int) -> Known | Outcome | None:
        """The session in which it is to be decided here, as the next of its numbers; or what is told of it at once.

        None: it repeats one of the same bundle, of which it is not known yet what it came to. Ask again then.
        """
        session = self.used.get(action.session) or self.find(action.session)
        if session is None:
            if (late := unborn_or_over(action.session, self.horizon, position)) is not None:
                return Outcome(late)
            if action.number != 1:
                return Outcome(Verdict.EARLY if action.number > 1 else Verdict.RELEASED)
            session = self._known[action.session] = Known(action.session)
        session.used = position
        self.used[action.session] = session
        if action.received > session.received:
            session.release(action.received)
        number = action.number
        if number != session.last + 1:
            return _not_next(session, number)
        if session.last - session.received >= WINDOW:
            return Outcome(Verdict.CROWDED)
        session.last = number
        return session

    def hear_relaxed(self, action: Action, position: int) -> Outcome | None:
        """None: it is to be refused, as any is here, which decides it."""
        session = self.find(action.session)
        if session is None and (late := unborn_or_over(action.session, self.horizon, position)) is not None:
            return Outcome(late)
        outcome = None
        if not 1 <= action.number <= LARGEST:
            outcome = Outcome(Verdict.RELEASED if action.number < 1 else Verdict.EARLY)
        if session is None and outcome is None:
            session = self._known[action.session] = Known(action.session)
        if session is not None:
            session.used = position
            self.used[action.session] = session
        return outcome

    def outcome_of(self, asked: OutcomeOf, position: int) -> Outcome:
        session = self.find(asked.session)
        if session is None:
            is_over = unborn_or_over(asked.session, self.horizon, position) is Verdict.EXPIRED
            return Outcome(Verdict.EXPIRED if is_over else Verdict.UNKNOWN)
        if asked.is_relaxed or asked.number > session.last:
            return Outcome(Verdict.UNKNOWN)
        if asked.number <= session.received:
            return Outcome(Verdict.RELEASED)
        return session.again(asked.number)

    def expire(self, before: int) -> None:
        """The horizon never falls. Nothing is left of who is over: its name tells."""
        self._horizon = max(before, self.horizon)
        tables.write_meta(self._connection, "horizon", self._horizon)
        self._connection.execute(_EXPIRE, (self._horizon,), prepare_flags=OURS)
        self._known.clear()

    def write(self) -> None:
        """The rows of those that were used."""
        rows = [
            (each.name, each.last, each.received, each.used, _ENCODER.encode(each.in_order()))
            for each in self.used.values()
        ]
        if rows:
            self._connection.executemany(_REPLACE, rows, prepare_flags=OURS)
        self.used.clear()
        while len(self._known) > self._limits.cached_sessions:
            del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """What was rolled back."""
        self._known.clear()
        self.used.clear()
        self._horizon = None

    @property
    def horizon(self) -> int:
        if self._horizon is None:
            self._horizon = tables.stands(self._connection).horizon
        return self._horizon

    def find(self, name: str) -> Known | None:
        known = self._known.get(name)
        if known is not None:
            return known
        row = self._connection.execute(_SELECT, (name,), prepare_flags=OURS).fetchone()
        if row is None:
            return None
        last, received, used, outcomes = row
        known = Known(name, last, received, used)
        kept = _OUTCOMES.decode(outcomes)
        known.kept = dict(zip(range(received + 1, last + 1), kept, strict=True))
        known.kept_bytes = sum(len(outcome.value) for outcome in kept)
        self._known[name] = known
        return known


def _not_next(session: Known, number: int) -> Outcome | None:
    if number <= session.received:
        return Outcome(Verdict.RELEASED)
    if number <= session.last:
        return session.again(number) if number in session.kept else None
    return Outcome(Verdict.EARLY)


_ENCODER = msgspec.msgpack.Encoder()
_OUTCOMES = msgspec.msgpack.Decoder(list[Outcome])
