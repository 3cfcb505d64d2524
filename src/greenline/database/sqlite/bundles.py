"""Bundles: what they do to the state in the transaction that is open, and what each of their actions comes to.

The same on the writer's connection and on a dirty overlay. What an action did to the whole transaction (OR ROLLBACK, or
being stopped in the middle of a change) is mended here: all that was open is done again, without that action.
"""

from __future__ import annotations

from hashlib import blake2b

import apsw

from greenline.database.procedures import Lacking
from greenline.database.sqlite import tables
from greenline.database.sqlite.connection import OURS
from greenline.database.sqlite.deciding import Deciding, Place
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.sessions import Sessions
from greenline.database.sqlite.statements import Executor, Vanished
from greenline.kernel.actions import DIGEST_BYTES, Outcome, OutcomeOf
from greenline.kernel.database import Activate, System
from greenline.kernel.statements import Failure, encode

BEGIN = "BEGIN IMMEDIATE"
Chunks = tuple[bytes, ...]


class Bundles:
    def __init__(self, connection: apsw.Connection, moment: Moment, limits: Limits) -> None:
        self.executor = Executor(connection, moment, limits)
        self._connection = connection
        self._limits = limits
        self._sessions = Sessions(connection, limits)
        self._open: list[tuple[int, Chunks, tuple[System, ...]]] = []
        """What was applied in this transaction, and may have to be again."""
        self._fates: dict[Place, Failure | None] = {}
        """Of actions that made the transaction vanish: what they come to; None: run it alone, to see."""
        self.forget()

    def forget(self) -> None:
        """There was a rollback, or another state is under the same name: read again where it stands."""
        stands = tables.stands(self._connection)
        self.position, self.outcomes = stands.position, stands.outcomes
        self._open.clear()
        self._sessions.forget()
        self.executor.schema.has_changed()

    def committed(self) -> None:
        self._open.clear()
        self._fates.clear()

    def apply(self, position: int, chunks: Chunks, system: tuple[System, ...] = ()) -> tuple[Outcome, ...]:
        """In the transaction that is open. `Lacking`: nothing is done."""
        for each in system:
            if isinstance(each, Activate):
                raise Lacking(f"there are no procedures here, but {each.name} version {each.version} is to be called")
        self._open.append((position, chunks, system))
        while True:
            try:
                return self._apply(position, chunks, system)
            except Vanished as vanished:
                self._do_again(vanished, position)

    def outcome_of(self, asked: OutcomeOf) -> Outcome:
        return self._sessions.outcome_of(asked, self.position)

    def _do_again(self, vanished: Vanished, position: int) -> None:
        """All bundles but the last, in a new transaction."""
        assert vanished.sub is not None, "an action that nobody has named made the transaction vanish"
        self._fates[position, vanished.sub] = vanished.failure
        again = list(self._open)
        self.forget()
        self._open = again
        self._connection.execute(BEGIN, prepare_flags=OURS)
        for bundle in again[:-1]:
            try:
                self._apply(*bundle)
            except Vanished as another:  # it was within the limit by the count of that time
                self._do_again(another, bundle[0])
                return

    def _apply(self, position: int, chunks: Chunks, system: tuple[System, ...]) -> tuple[Outcome, ...]:
        for each in system:
            # A horizon that lies ahead would refuse everybody who is still to come: it is here at most.
            assert not isinstance(each, Activate), "refused above"
            self._sessions.expire(min(each.before, position))
        replies = Deciding(self.executor, self._sessions, self._fates, self._limits, position).decide(chunks)
        self._sessions.write()
        self.outcomes = blake2b(self.outcomes + encode(replies), digest_size=DIGEST_BYTES).digest()
        self.position = position
        tables.write_stands(self._connection, position, self.outcomes)
        return replies
