"""Statements: one action's, together or not at all, and what they come to; and what a query comes to.

What is known of a text and was prepared before makes things quick, and must not be seen: SQLite looks at parameters of
what is prepared before it finds that a table is gone, and a replica that was just restarted has prepared nothing. So an
action that fails before it runs is done again, alone, as if nothing were known, and only then judged.

An action has so many steps of SQLite's virtual machine and no more, at every replica the same: time would differ. A
prepared statement that is used again does not begin to count at zero, so its count may be too high, never too low: on
coming to the limit the action is done alone as well. SQLite rolls back the whole transaction when it is stopped in the
middle of a change, as it does for OR ROLLBACK: then all that was open is gone (`Vanished`), and whoever holds the
transaction does it again, without this action.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Protocol

import apsw

from greenline.database.sqlite.connection import FOREIGN, OURS
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.failures import OF_PARAMETERS, Fails, failure_of, misuse, too_large, too_slow
from greenline.database.sqlite.forms import Forms, names
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.permissions import CHANGES_NOTHING
from greenline.database.sqlite.schema import Schema
from greenline.database.sqlite.tables import SEQUENCES
from greenline.kernel.statements import Conflict, Failure, Inquiry, Question, Result, Statement, Trial, Work

PACE = 10_000
"""So many steps are counted as one."""
LOOKS_EVERY = 500
"""So many steps of a query lie between two looks at the clock: one step may take long, with values of megabytes."""
VALUE_BYTES = 9
"""What a value takes at most, but for texts and blobs, which have a length."""
LAST_ROWID_TAKEN = misuse(
    "LastRowid", "a table would hold the rowid 9223372036854775807, after which SQLite draws rowids by chance"
)
TABLES_NUMBERED_HIGH = misuse(
    "LastRowid", f"a row of {SEQUENCES} would have such a rowid that SQLite may draw the next one by chance"
)
_OF_A_QUERY = "query"
UNKEPT = Failure(apsw.SQLITE_CONSTRAINT_FOREIGNKEY, "ConstraintForeignkey", "FOREIGN KEY constraint failed")

Came = tuple[Result, ...] | Failure | Conflict


class Vanished(Exception):
    """The transaction is gone, with all that was in it; because of an action that came to `failure`.

    None: it came to the limit of steps, by a count that may be too high.
    """

    def __init__(self, failure: Failure | None, sub: int | None = None) -> None:
        super().__init__("the transaction was rolled back by what ran in it")
        self.failure = failure
        self.sub = sub
        """Which action of its bundle it was, if that is known where it is found."""


class Onlooker(Protocol):
    """Somebody else whom SQLite tells of each row. Of rows that are inserted together, we do: once."""

    def pause(self) -> None: ...

    def inserted(self, table: str, rowids: Sequence[int]) -> None:
        """In a table where that was all that happened. It may still be undone."""
        ...

    def listen(self) -> None: ...


class Executor:
    def __init__(self, connection: apsw.Connection, moment: Moment, limits: Limits) -> None:
        self.connection = connection
        self.moment = moment
        self.forms = Forms(connection)
        self.schema = Schema(connection)
        self._limits = limits
        self._most = limits.steps // PACE
        self._deadline: float | None = None
        self.onlooker: Onlooker | None = None
        self.is_over = False
        """We have stopped it: it took too many steps, or too long."""
        connection.set_progress_handler(self._on_steps, PACE)

    # Actions.

    def run(self, work: Work, session: str = "", number: int = 0, *, is_alone: bool = False) -> Came:
        """In the open transaction; nothing is left of it if it fails. `is_alone`: it prepares its own statements."""
        connection = self.connection
        connection.execute("SAVEPOINT action", prepare_flags=OURS)
        came = self._attempt(work, session, number, is_alone)
        if came is None:
            connection.execute("ROLLBACK TO action", prepare_flags=OURS)
            came = self._attempt(work, session, number, is_alone=True)
            assert came is not None, "it is judged when it is alone"
        if not isinstance(came, tuple):
            connection.execute("ROLLBACK TO action", prepare_flags=OURS)
            self._tell_schema(work)
        connection.execute("RELEASE action", prepare_flags=OURS)
        return came

    def trial(self, trial: Trial) -> Result | Failure | Conflict:
        """What the last of them would come to. All is undone."""
        if self.connection.in_transaction:
            return misuse("NotHere", "a trial is of the green state, not of what is only red")
        self._most = self._limits.trial_steps // PACE
        self.connection.execute("BEGIN", prepare_flags=OURS)
        try:
            came = self.run(trial.work, is_alone=True)
        except Vanished as vanished:
            came = vanished.failure or too_slow("it takes too long for a trial", 0)
        finally:
            self._most = self._limits.steps // PACE
            self.schema.has_changed()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK", prepare_flags=OURS)
        if isinstance(came, tuple):
            return came[-1] if came else Result()
        return came

    def _tell_schema(self, work: Work) -> None:
        """What was undone may have been a change of it."""
        forms = [self.forms.get(statement.sql) for statement in work.statements]
        if any(form is None or not (form.changes_rows or form.is_readonly) for form in forms):
            self.schema.has_changed()

    def begin(self, work: Work | Question, session: str, number: int) -> None:
        self.moment.begin(work, session, number, self.connection.total_changes())
        self.connection.set_last_insert_rowid(0)
        self.is_over = False

    def _attempt(self, work: Work, session: str, number: int, is_alone: bool) -> Came | None:
        """None: it came to the limit of steps, or failed by what was known before, and is to be done alone."""
        self.begin(work, session, number)
        results: list[Result] = []
        left = self._limits.value_bytes
        try:
            for statement in work.statements:
                result, size = self._execute(statement, left, can_cache=not is_alone)
                if statement.expected and result.seen != statement.expected:
                    return Conflict(len(results))
                left -= size
                results.append(result)
            self._check_keys()
        except Fails as fails:
            return _at(fails.failure, len(results)) if is_alone else None
        except OF_PARAMETERS as error:
            is_judged = is_alone or not self.connection.in_transaction
            return self._failed(error, is_alone, len(results)) if is_judged else None
        except apsw.Error as error:
            return self._failed(error, is_alone, len(results))
        return tuple(results)

    def _failed(self, error: Exception, is_alone: bool, statement: int) -> Failure | None:
        failure: Failure | None
        if self.is_over:
            failure = too_slow("it takes more steps than an action may", statement) if is_alone else None
        else:
            failure = failure_of(error, self.connection, self.moment, statement)
        if not self.connection.in_transaction:
            raise Vanished(failure)
        return failure

    def _execute(self, statement: Statement, left: int, *, can_cache: bool) -> tuple[Result, int]:
        """What it comes to, and how large that is."""
        sql, parameters = statement.sql, statement.parameters
        connection = self.connection
        before = connection.total_changes()
        self.moment.is_foreign = True
        try:
            form = self.forms.of(sql, parameters, is_afresh=not can_cache)
            if form.is_explain:
                raise Fails(misuse("NotHere", "how a statement is carried out is for a query to ask"))
            cursor = connection.execute(sql, parameters, can_cache=can_cache, prepare_flags=FOREIGN)
            columns, rows, size = self._fetched(cursor, statement, left) if form.has_rows else ((), (), 0)
        finally:
            self.moment.is_foreign = False
        if form.is_readonly:
            return Result(0, connection.last_insert_rowid(), columns, rows), size
        changes = connection.changes() if connection.total_changes() > before else 0
        last_id = connection.last_insert_rowid()
        if not form.changes_rows:
            self.schema.has_changed()
            if (why := self.schema.why_not()) is not None:
                raise Fails(misuse("NotHere", why))
        if self.moment.took_last_rowid:
            raise Fails(LAST_ROWID_TAKEN)
        if (form.may_number_tables or self.schema.may_number_tables) and not self.schema.are_tables_numbered_low():
            raise Fails(TABLES_NUMBERED_HIGH)
        return Result(changes, last_id, columns, rows), size

    def _fetched(
        self, cursor: apsw.Cursor, statement: Statement, left: int
    ) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...], int]:
        size = 0
        rows = []
        columns: tuple[str, ...] | None = None
        for row in cursor:
            columns = columns or names(cursor)
            size += sum([len(value) if isinstance(value, str | bytes) else VALUE_BYTES for value in row])
            if size > left:
                cursor.close(True)
                raise Fails(too_large("the result is larger than it may be: ask for less at a time", 0))
            rows.append(row)
        if columns is None:
            columns = self.forms.columns(statement.sql, statement.parameters)
        return columns, tuple(rows), size

    def _check_keys(self) -> None:
        """Deferred ones are looked at when a transaction is committed; an action is one, though many share ours."""
        if self.connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0]:
            raise Fails(UNKEPT)

    def _on_steps(self) -> bool:
        if not self.moment.is_foreign:
            return False  # what we do ourselves is nobody's fault
        self.moment.steps += 1
        is_late = self._deadline is not None and time.monotonic() > self._deadline
        if is_late or self.moment.steps > self._most:
            self.is_over = True
        return self.is_over

    # Queries.

    def ask(self, question: Question, deadline: float | None = None) -> Result | Failure | Conflict:
        """Until `deadline`, by the monotonic clock. Raises `apsw.InterruptError` if somebody else stops it."""
        self.begin(question, "", 0)
        self._deadline, self._most = deadline, sys.maxsize
        self.connection.set_progress_handler(self._on_steps, LOOKS_EVERY, id=_OF_A_QUERY)
        try:
            result = self._asked(question.statement)
        except Fails as fails:
            return fails.failure
        except (apsw.Error, *OF_PARAMETERS) as error:
            if self.is_over:
                return too_slow("it takes longer than a query may", 0)
            return failure_of(error, self.connection, self.moment, 0)
        finally:
            self.connection.set_progress_handler(None, id=_OF_A_QUERY)
            self._deadline, self._most = None, self._limits.steps // PACE
            self.moment.is_foreign = False
        expected = question.statement.expected
        return Conflict(0) if expected and result.seen != expected else result

    def inquire(self, inquiry: Inquiry) -> Result:
        """A statement of our own, that reads."""
        asked = inquiry.statement
        return Result(rows=tuple(self.connection.execute(asked.sql, asked.parameters, prepare_flags=OURS)))

    def look(self, statement: Statement) -> Result | Failure:
        """Does it only read? SQLite says so of what it has prepared."""
        self.moment.is_foreign = True
        try:
            is_readonly = self.forms.of(statement.sql, statement.parameters).is_readonly
        except Fails as fails:
            return fails.failure
        except (apsw.Error, *OF_PARAMETERS) as error:
            failure = failure_of(error, self.connection, self.moment, 0)
            if not failure.message.endswith(CHANGES_NOTHING):
                return failure
            is_readonly = False  # a reader's connection does not even prepare it
        finally:
            self.moment.is_foreign = False
        return Result(rows=((int(is_readonly),),))

    def _asked(self, statement: Statement) -> Result:
        self.moment.is_foreign = True
        form = self.forms.of(statement.sql, statement.parameters)
        if not form.is_readonly:
            raise Fails(misuse("ReadOnly", CHANGES_NOTHING))
        cursor = self.connection.execute(statement.sql, statement.parameters, prepare_flags=FOREIGN)
        if not form.has_rows:
            return Result()
        columns, rows, _ = self._fetched(cursor, statement, self._limits.result_bytes)
        return Result(0, 0, columns, rows)


def _at(failure: Failure, statement: int) -> Failure:
    return Failure(failure.code, failure.kind, failure.message, statement)
