"""Runs: simple statements of consecutive actions, executed together in one savepoint.

Equal texts go to SQLite in one call, which pulls their parameters one after the other: when the next are pulled the
one before has finished, and the connection tells what it came to. If anything is wrong with any of them, all are
undone, and whoever asked does them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import apsw

from greenline.database.sqlite.connection import FOREIGN, OURS
from greenline.database.sqlite.failures import OF_PARAMETERS, failure_of
from greenline.database.sqlite.sessions import Known
from greenline.database.sqlite.statements import Executor, Vanished
from greenline.kernel.actions import Action, Outcome, Verdict
from greenline.kernel.statements import Parameters, Result, Work, encode

MOST = 128
"""In one savepoint: so many are done twice if one fails."""

Task = tuple[str, int, Action, Work, Known]
"""The text, the place in the bundle, what is asked, in which session."""


def is_known_to_run(executor: Executor, sql: str) -> bool:
    """May this text be executed together with others, as the schema is now?"""
    form = executor.forms.get(sql)
    return form is not None and form.may_run and executor.schema.is_plain


def run(executor: Executor, tasks: list[Task], position: int) -> list[Outcome] | None:
    """What each comes to; or None, and nothing is done."""
    values: list[bytes] = []

    def execute() -> None:
        for sql, group in groupby(tasks, _SQL):
            several = list(group)
            actions = [action for _, _, action, _, _ in several]
            _execute(executor, sql, _parameters(executor, actions, [work for _, _, _, work, _ in several], values))

    if not _is_done(executor, execute, lambda: tasks[min(len(values), len(tasks) - 1)][1]):
        return None
    return [Outcome(Verdict.DONE, value, position, task[1]) for value, task in zip(values, tasks, strict=True)]


def straight(
    executor: Executor, sql: str, actions: tuple[Action, ...], works: list[Work], first: int
) -> list[bytes] | None:
    """The same of actions that all have this text; the values of their outcomes. The first one's place is `first`."""
    values: list[bytes] = []

    def execute() -> None:
        _execute(executor, sql, _parameters(executor, actions, works, values))

    return values if _is_done(executor, execute, lambda: first + len(values)) else None


def _is_done(executor: Executor, execute: Callable[[], None], failing: Callable[[], int]) -> bool:
    """In a savepoint: all, or nothing. `failing` says the place of the action that is at work."""
    connection = executor.connection
    connection.execute("SAVEPOINT run", prepare_flags=OURS)
    executor.is_over = executor.moment.took_last_rowid = False
    executor.moment.steps = 0
    is_done = False
    try:
        execute()
        is_done = not executor.moment.took_last_rowid
    except (apsw.Error, *OF_PARAMETERS) as error:
        _check(executor, error, failing())
    if not is_done:
        connection.execute("ROLLBACK TO run", prepare_flags=OURS)
    connection.execute("RELEASE run", prepare_flags=OURS)
    return is_done


def _check(executor: Executor, error: Exception, sub: int) -> None:
    """It is an outcome, of this action, and can be undone; or it is raised."""
    failure = None if executor.is_over else failure_of(error, executor.connection, executor.moment, 0)
    if not executor.connection.in_transaction:
        raise Vanished(failure, sub)


def _execute(executor: Executor, sql: str, parameters: Iterator[Parameters]) -> None:
    executor.moment.is_foreign = True
    try:
        executor.connection.executemany(sql, parameters, prepare_flags=FOREIGN)
    finally:
        executor.moment.is_foreign = False


def _parameters(
    executor: Executor, actions: Sequence[Action], works: list[Work], values: list[bytes]
) -> Iterator[Parameters]:
    """One after the other; when the next are asked for, what the one before came to is added to the values."""
    connection, moment = executor.connection, executor.moment
    set_last, last, changes = connection.set_last_insert_rowid, connection.last_insert_rowid, connection.changes
    total, head, one, tail = connection.total_changes, _HEAD, _HEAD_OF_ONE, _TAIL
    for action, work in zip(actions, works, strict=True):
        moment.work = work
        moment.session = action.session
        moment.number = action.number
        moment.total = total()
        set_last(0)
        yield work.statements[0].parameters
        last_id, count = last(), changes()
        # As `encode((Result(count, last_id),))` has it, and much faster.
        values.append((one if count == 1 else head + encode(count)) + encode(last_id) + tail)


_SQL = itemgetter(0)
_WHOLE = encode((Result(),))
_HEAD, _TAIL = _WHOLE[:3], _WHOLE[5:]
_HEAD_OF_ONE = _HEAD + encode(1)
assert _HEAD + encode(300) + encode(70_000) + _TAIL == encode((Result(300, 70_000),)), "results are encoded otherwise"
