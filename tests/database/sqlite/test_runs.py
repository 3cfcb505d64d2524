"""Equal statements are executed together, and nobody can tell: outcomes and state are as if they were not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.database.sqlite import runs
from greenline.kernel.actions import Action
from greenline.kernel.statements import Failure, Result, Statement, encode
from tests.database.sqlite.asking import Database, work

SCHEMA = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b)",
    "CREATE TABLE w (k TEXT PRIMARY KEY, n) WITHOUT ROWID",
    "CREATE TABLE log (what)",
    "CREATE TRIGGER tt AFTER INSERT ON t WHEN new.b = 3 BEGIN INSERT INTO log VALUES (new.a), (random()); END",
    "CREATE TRIGGER tr BEFORE DELETE ON t WHEN old.b = 2 BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
)
numbers = st.integers(0, 4)
statements = st.one_of(
    st.builds(Statement, st.just("INSERT INTO t (a, b) VALUES (?, ?)"), st.tuples(numbers, numbers)),
    st.builds(Statement, st.just("INSERT OR IGNORE INTO t (a, b) VALUES (?, ?)"), st.tuples(numbers, numbers)),
    st.builds(Statement, st.just("INSERT OR ROLLBACK INTO t (a) VALUES (?)"), st.tuples(numbers)),
    st.builds(
        Statement, st.just("INSERT INTO w VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1"), st.tuples(numbers)
    ),
    st.builds(Statement, st.just("UPDATE t SET b = ? WHERE a >= ?"), st.tuples(numbers, numbers)),
    st.builds(Statement, st.just("UPDATE OR FAIL t SET a = a + 1 WHERE b < ?"), st.tuples(numbers)),
    st.builds(Statement, st.just("DELETE FROM t WHERE a = ?"), st.tuples(numbers)),
    st.builds(Statement, st.just("INSERT INTO t (a) VALUES (?)"), st.tuples()),
    st.builds(Statement, st.sampled_from(["SELECT count(*) FROM t", "", "-- nothing"]), st.just(())),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(statements, st.integers(1, 4)), max_size=12))
def test_actions_come_to_the_same_together_and_one_by_one(story: list[tuple[Statement, int]]) -> None:
    asked = [work(statement, seed=seed) for statement, times in story for seed in range(times)]
    actions = [Action("s", number, encode(each), number - 1) for number, each in enumerate(asked, 1)]
    with TemporaryDirectory() as directory:
        with Database(Path(directory) / "p") as together:
            together.decide(Action("maker", 1, encode(work(*SCHEMA))))
            came = [(outcome.verdict, outcome.value) for outcome in together.apply(*actions)]
            together.commit()
            held = [together.rows(f"SELECT * FROM {table}") for table in ("t", "w", "log")]
        with Database(Path(directory) / "q") as alone:
            alone.decide(Action("maker", 1, encode(work(*SCHEMA))))
            came_alone = []
            for action in actions:
                (outcome,) = alone.apply(action)
                came_alone.append((outcome.verdict, outcome.value))
            alone.commit()
            assert [alone.rows(f"SELECT * FROM {table}") for table in ("t", "w", "log")] == held
    assert came == came_alone


def test_many_equal_inserts_each_have_their_own_result(tmp_path: Path) -> None:
    many = 3 * runs.MOST
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)")
        actions = [
            Action(f"c{number}", 1, encode(work(Statement("INSERT INTO t (a) VALUES (?)", (number % (many - 1),)))))
            for number in range(many)
        ]

        came = database.decide(*actions)

    assert came[:-1] == [(Result(1, number + 1),) for number in range(many - 1)]
    assert isinstance(came[-1], Failure)
    assert came[-1].kind == "ConstraintUnique"


def test_equal_inserts_need_no_savepoint_each(tmp_path: Path) -> None:
    """What is prepared and run for fifty more is one savepoint, not fifty."""
    insert = Statement("INSERT INTO t VALUES (?)", (1,))
    profiled: list[str] = []
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
        database.decide(database.next(insert))
        database.sqlite._writer.between(lambda connection: connection.trace_v2(STATEMENTS, _noted(profiled)))
        database.decide(*(database.next(insert) for _ in range(50)))

    assert sum(sql.startswith("SAVEPOINT") for sql in profiled) == 1
    assert sum(sql.startswith("INSERT INTO t") for sql in profiled) == 5, "of 50, three times 16 are one, and two alone"


STATEMENTS = apsw.SQLITE_TRACE_STMT


def _noted(into: list[str]) -> Callable[[dict[str, Any]], None]:
    return lambda event: into.append(event["sql"])


def test_a_change_of_the_schema_between_equal_statements_is_seen_by_the_second(tmp_path: Path) -> None:
    insert = Statement("INSERT INTO t (a) VALUES (?)", (1,))
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
        database.done(insert)
        came = database.decide(
            database.next(insert),
            database.next("CREATE UNIQUE INDEX u ON t (a) WHERE rowid > 2"),
            database.next(insert),
            database.next(insert),
            database.next("DROP TABLE t"),
            database.next(insert),
        )

    assert [getattr(each, "kind", "done") for each in came] == [
        "done",
        "done",
        "done",
        "ConstraintUnique",
        "done",
        "Error",
    ]
