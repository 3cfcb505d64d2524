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
from greenline.kernel.actions import WINDOW, Action, Outcome, OutcomeOf, Series, Verdict

Piece = tuple[int, bytes]
"""The last number of those whose outcomes are packed in it."""
SMALL = 256
"""Bytes of an outcome that are kept in any case. Runs come to less, so that it does not matter when they are kept."""

_SELECT = "SELECT last, received, used, outcomes FROM greenline_sessions WHERE name = ?"
_REPLACE = "INSERT OR REPLACE INTO greenline_sessions VALUES (?, ?, ?, ?, ?)"
_EXPIRE = "DELETE FROM greenline_sessions WHERE used < ?"


class Known:
    """One session. Outcomes are kept for the numbers after `received`, up to `decided`; packed, but for the latest."""

    __slots__ = ("decided", "fresh", "large", "last", "name", "pieces", "received", "used")

    def __init__(self, name: str, last: int = 0, received: int = 0, used: int = 0) -> None:
        self.name = name
        self.last = last
        """The last number whose turn it was; what it came to may not be known yet."""
        self.decided = last
        self.received = received
        self.used = used
        self.pieces: list[Piece] = []
        """What earlier bundles came to, one after the other."""
        self.fresh: list[Outcome] = []
        """What this one came to, up to `decided`."""
        self.large: list[tuple[int, int]] = []
        """Numbers whose values are not small, and their sizes."""

    def release(self, received: int) -> None:
        """The client has the outcomes up to this number."""
        self.received = min(received, self.last)
        if self.large:
            self.large = [each for each in self.large if each[0] > self.received]

    def keep(self, outcome: Outcome, most: int) -> None:
        """Of the next one that is not decided."""
        self.decided += 1
        size = len(outcome.value)
        if size > SMALL:
            if size > STORED_BYTES or sum([each for _, each in self.large]) + size > most:
                outcome = Outcome(outcome.verdict, b"", outcome.position, outcome.sub, is_whole=False)
            else:
                self.large.append((self.decided, size))
        self.fresh.append(outcome)

    def keep_all(self, outcomes: list[Outcome]) -> None:
        """Small ones, of the next that are not decided."""
        self.decided += len(outcomes)
        self.fresh += outcomes

    def again(self, number: int) -> Outcome:
        kept = self._kept(number)
        return Outcome(kept.verdict, kept.value, kept.position, kept.sub, is_again=True, is_whole=kept.is_whole)

    def _kept(self, number: int) -> Outcome:
        behind = number - self.decided - 1
        if -behind <= len(self.fresh):
            return self.fresh[behind]
        last, packed = next(piece for piece in self.pieces if piece[0] >= number)
        return _OUTCOMES.decode(packed)[number - last - 1]

    def settle(self) -> bytes:
        """The bundle is over: all that is kept, packed."""
        gone = 0
        while gone < len(self.pieces) and self.pieces[gone][0] <= self.received:
            gone += 1
        del self.pieces[:gone]
        if self.fresh:
            self.pieces.append((self.decided, _ENCODER.encode(self.fresh)))
            self.fresh = []
        return _ENCODER.encode(self.pieces)

    def unpack(self, packed: bytes) -> None:
        """What `settle` has packed."""
        self.pieces = _PIECES.decode(packed)
        for last, piece in self.pieces:
            for behind, outcome in enumerate(reversed(_OUTCOMES.decode(piece))):
                if len(outcome.value) > SMALL and last - behind > self.received:
                    self.large.append((last - behind, len(outcome.value)))


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

    def is_next(self, series: Series) -> Known | None:
        """The session whose next requests these are, if all may be decided; nothing is changed."""
        session = self.used.get(series.session) or self.find(series.session)
        if session is None or series.first != session.last + 1:
            return None
        received = max(session.received, min(series.received, session.last))
        return session if session.last + len(series.tails) - received <= WINDOW else None

    def hear_all(self, session: Known, received: int, count: int, position: int) -> None:
        """The next requests of a session, which `is_next` has found."""
        session.used = position
        self.used[session.name] = session
        if received > session.received:
            session.release(received)
        session.last += count

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
        rows = [(each.name, each.last, each.received, each.used, each.settle()) for each in self.used.values()]
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
        known.unpack(outcomes)
        self._known[name] = known
        return known


def _not_next(session: Known, number: int) -> Outcome | None:
    if number <= session.received:
        return Outcome(Verdict.RELEASED)
    if number <= session.last:
        return session.again(number) if number <= session.decided else None
    return Outcome(Verdict.EARLY)


_ENCODER = msgspec.msgpack.Encoder()
_OUTCOMES = msgspec.msgpack.Decoder(list[Outcome])
_PIECES = msgspec.msgpack.Decoder(list[Piece])
