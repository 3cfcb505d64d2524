"""Runs: simple statements of consecutive actions, executed together in one savepoint.

Equal texts go to SQLite in one call, which pulls their parameters one after the other: when the next are pulled the
one before has finished, and the connection tells what it came to. If anything is wrong with any of them, all are
undone, and whoever asked does them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import apsw

from greenline.database.sqlite.connection import OURS
from greenline.database.sqlite.failures import OF_PARAMETERS, failure_of
from greenline.database.sqlite.schema import LAST_ROWID
from greenline.database.sqlite.statements import Executor, Vanished
from greenline.kernel.actions import Action
from greenline.kernel.statements import Parameters, Result, Work, encode

MOST = 128
"""In one savepoint: so many are done twice if one fails."""

Task = tuple[int, Action, Work]
"""Its place in the bundle; what is asked."""
Came = tuple[int, int]
"""Changes, and the last rowid."""


def may_run(executor: Executor, action: Action, work: Work) -> bool:
    if len(work.statements) != 1 or action.reads:
        return False
    (statement,) = work.statements
    if statement.expected or type(statement.parameters) is dict:
        return False
    form = executor.forms.get(statement.sql)
    return form is not None and form.may_run and executor.schema.is_plain


def run(executor: Executor, tasks: list[Task]) -> list[bytes] | None:
    """The results of each, encoded; or None, and nothing is done."""
    connection, moment = executor.connection, executor.moment
    came: list[Came] = []
    connection.execute("SAVEPOINT run", prepare_flags=OURS)
    executor.is_over = False
    try:
        for sql, group in groupby(tasks, _sql):
            _execute(executor, sql, group, came)
    except (apsw.Error, *OF_PARAMETERS) as error:
        if connection.in_transaction:
            failure_of(error, connection, moment, 0)  # raises what is no outcome
            came.clear()
        else:
            failure = None if executor.is_over else failure_of(error, connection, moment, 0)
            raise Vanished(failure, tasks[len(came)][0]) from None
    if not came or executor.schema.holds_last_rowid() or any(last == LAST_ROWID for _, last in came):
        connection.execute("ROLLBACK TO run", prepare_flags=OURS)
        connection.execute("RELEASE run", prepare_flags=OURS)
        return None
    connection.execute("RELEASE run", prepare_flags=OURS)
    return [_encoded(*each) for each in came]


def _sql(task: Task) -> str:
    return task[2].statements[0].sql


def _execute(executor: Executor, sql: str, tasks: Iterator[Task], came: list[Came]) -> None:
    executor.moment.is_foreign = True
    try:
        executor.connection.executemany(sql, _parameters(executor, tasks, came))
    finally:
        executor.moment.is_foreign = False


def _parameters(executor: Executor, tasks: Iterator[Task], came: list[Came]) -> Iterator[Parameters]:
    connection, moment = executor.connection, executor.moment
    set_last, last, changes = connection.set_last_insert_rowid, connection.last_insert_rowid, connection.changes
    for _, action, work in tasks:
        moment.now = work.now
        moment.seed = work.seed
        moment.session = action.session
        moment.number = action.number
        moment.calls = moment.steps = 0
        set_last(0)
        yield work.statements[0].parameters
        came.append((changes(), last()))


def _encoded(changes: int, last_id: int) -> bytes:
    """As `encode((Result(changes, last_id),))` has it."""
    return _HEAD + encode(changes) + encode(last_id) + _TAIL


_WHOLE = encode((Result(),))
_HEAD, _TAIL = _WHOLE[:3], _WHOLE[5:]
assert _encoded(300, 70_000) == encode((Result(300, 70_000),)), "results are encoded in another way"
