"""Runs: simple statements of consecutive actions, executed together in one savepoint.

Equal texts go to SQLite in one call, which pulls their parameters one after the other: when the next are pulled the
one before has finished, and the connection tells what it came to. If anything is wrong with any of them, all are
undone, and whoever asked does them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

import apsw

from greenline.database.sqlite.connection import FOREIGN, OURS
from greenline.database.sqlite.determinism import watch_rowids
from greenline.database.sqlite.failures import OF_PARAMETERS, failure_of
from greenline.database.sqlite.rows import SIZES, insert
from greenline.database.sqlite.sessions import Known
from greenline.database.sqlite.statements import Executor, Vanished
from greenline.kernel.actions import Action, Outcome, Series, Verdict
from greenline.kernel.statements import Parameters, Result, Work, encode

MOST = 128
"""In one savepoint: so many are done twice if one fails."""

Task = tuple[str, int, Action, Work, Known]
"""The text, the place in the bundle, what is asked, in which session."""
Turn = tuple[str, int, Work]
"""Whose it is: the session and the number; and what says the time."""


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
            turns = ((action.session, action.number, work) for _, _, action, work, _ in several)
            rows = [work.statements[0].parameters for _, _, _, work, _ in several]
            _execute(executor, sql, turns, rows, values)

    if not _is_done(executor, execute, lambda: tasks[min(len(values), len(tasks) - 1)][1]):
        return None
    return [Outcome(Verdict.DONE, value, position, task[1]) for value, task in zip(values, tasks, strict=True)]


def run_series(
    executor: Executor, series: Series, work: Work, rows: list[Parameters], first: int
) -> list[bytes] | None:
    """The same of a series that has one text, that of `work`; the values of their outcomes. The first one's place is
    `first`."""
    values: list[bytes] = []

    def execute() -> None:
        turns = ((series.session, number, work) for number in range(series.first, series.first + len(rows)))
        _execute(executor, work.statements[0].sql, turns, rows, values)

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
    except _Unsure:
        pass
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


class _Unsure(Exception):
    """Nobody knows what each of them came to."""


def _execute(
    executor: Executor, sql: str, turns: Iterable[Turn], rows: Sequence[Parameters], values: list[bytes]
) -> None:
    """Whose turn it is, is asked of those only that are not inserted together."""
    executor.moment.is_foreign = True
    try:
        done = _insert_rows(executor, sql, rows, values)
        if done < len(rows):
            parameters = _parameters(executor, zip(islice(turns, done, None), rows[done:], strict=True), values)
            executor.connection.executemany(sql, parameters, prepare_flags=FOREIGN)
    finally:
        executor.moment.is_foreign = False


def _insert_rows(executor: Executor, sql: str, rows: Sequence[Parameters], values: list[bytes]) -> int:
    """As many of them as may be inserted together: how many that was."""
    done, connection, form = 0, executor.connection, executor.forms.get(sql)
    plan = executor.schema.plan_of(form.rows) if form is not None and form.rows and len(rows) >= SIZES[-1] else None
    if plan is None:
        return 0
    connection.set_update_hook(None)  # no row has the last rowid, and calling us for each would cost more than the row
    onlooker = executor.onlooker
    if onlooker is not None:
        onlooker.pause()
    try:
        for size in SIZES:
            while len(rows) - done >= size:
                ids = insert(connection, plan, rows[done : done + size], FOREIGN)
                if ids is None:
                    raise _Unsure
                if onlooker is not None:
                    onlooker.inserted(plan.table, ids)
                values += [_HEAD_OF_ONE + encode(each) + _TAIL for each in ids]
                done += size
    finally:
        watch_rowids(connection, executor.moment)
        if onlooker is not None:
            onlooker.listen()
    return done


def _parameters(
    executor: Executor, asked: Iterable[tuple[Turn, Parameters]], values: list[bytes]
) -> Iterator[Parameters]:
    """One after the other; when the next are asked for, what the one before came to is added to the values."""
    connection, moment = executor.connection, executor.moment
    set_last, last, changes = connection.set_last_insert_rowid, connection.last_insert_rowid, connection.changes
    total, head, one, tail = connection.total_changes, _HEAD, _HEAD_OF_ONE, _TAIL
    for (session, number, work), row in asked:
        moment.session, moment.number, moment.work = session, number, work
        moment.calls = 0
        moment.total = total()
        set_last(0)
        yield row
        last_id, count = last(), changes()
        # As `encode((Result(count, last_id),))` has it, and much faster.
        values.append((one if count == 1 else head + encode(count)) + encode(last_id) + tail)


_SQL = itemgetter(0)
_WHOLE = encode((Result(),))
_HEAD, _TAIL = _WHOLE[:3], _WHOLE[5:]
_HEAD_OF_ONE = _HEAD + encode(1)
assert _HEAD + encode(300) + encode(70_000) + _TAIL == encode((Result(300, 70_000),)), "results are encoded otherwise"
