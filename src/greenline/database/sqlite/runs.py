"""Runs: simple statements of consecutive actions, executed together in one savepoint.

Equal texts go to SQLite in one call, which pulls their parameters one after the other: when the next are pulled the
one before has finished, and the connection tells what it came to. If anything is wrong with any of them, all are
undone, and whoever asked does them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import apsw

from greenline.database.sqlite.connection import FOREIGN, OURS
from greenline.database.sqlite.failures import OF_PARAMETERS, Fails, failure_of
from greenline.database.sqlite.schema import LAST_ROWID
from greenline.database.sqlite.sessions import Known
from greenline.database.sqlite.statements import LAST_ROWID_TAKEN, Executor, Vanished
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
    connection = executor.connection
    outcomes: list[Outcome] = []
    connection.execute("SAVEPOINT run", prepare_flags=OURS)
    executor.is_over = False
    is_done = False
    try:
        for sql, group in groupby(tasks, _SQL):
            _execute(executor, sql, _parameters(executor, group, position, outcomes))
        is_done = not executor.schema.holds_last_rowid()
    except Fails:
        pass
    except (apsw.Error, *OF_PARAMETERS) as error:
        _check(executor, error, tasks[len(outcomes)][1])
    if not is_done:
        connection.execute("ROLLBACK TO run", prepare_flags=OURS)
    connection.execute("RELEASE run", prepare_flags=OURS)
    return outcomes if is_done else None


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
    executor: Executor, tasks: Iterator[Task], position: int, outcomes: list[Outcome]
) -> Iterator[Parameters]:
    connection, moment = executor.connection, executor.moment
    set_last, last, changes = connection.set_last_insert_rowid, connection.last_insert_rowid, connection.changes
    done, head, tail = Verdict.DONE, _HEAD, _TAIL
    for _, sub, action, work, _ in tasks:
        moment.now = work.now
        moment.seed = work.seed
        moment.session = action.session
        moment.number = action.number
        moment.calls = moment.steps = 0
        set_last(0)
        yield work.statements[0].parameters
        last_id = last()
        if last_id == LAST_ROWID:
            raise Fails(LAST_ROWID_TAKEN)
        # As `encode((Result(changes(), last_id),))` has it, and much faster.
        value = head + encode(changes()) + encode(last_id) + tail
        outcomes.append(Outcome(done, value, position, sub))


_SQL = itemgetter(0)
_WHOLE = encode((Result(),))
_HEAD, _TAIL = _WHOLE[:3], _WHOLE[5:]
assert _HEAD + encode(300) + encode(70_000) + _TAIL == encode((Result(300, 70_000),)), "results are encoded otherwise"
