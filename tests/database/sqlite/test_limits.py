"""What takes too much is refused, and what it had begun is undone: the same at every replica."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from greenline.database.sqlite.limits import Limits
from greenline.kernel.statements import Failure, Statement
from tests.database.sqlite.asking import Database

ENDLESS = "WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
FILLING = f"INSERT INTO t SELECT i FROM ({ENDLESS.replace('max(i)', 'i')})"
SHORT = Limits(transaction_seconds=3600, steps=300_000, trial_steps=100_000, query_seconds=0.05, value_bytes=10_000)


def test_an_endless_read_in_an_action_fails_and_costs_nothing_else(tmp_path: Path) -> None:
    with Database(tmp_path, SHORT) as database:
        database.done("CREATE TABLE t (a)")
        came = database.decide(
            database.next("INSERT INTO t VALUES (1)"), database.next(ENDLESS), database.next("INSERT INTO t VALUES (2)")
        )

        assert [getattr(each, "kind", "done") for each in came] == ["done", "TooSlow", "done"]
        assert database.rows("SELECT a FROM t") == [(1,), (2,)]


def test_an_endless_change_fails_and_what_was_open_with_it_is_done_again(tmp_path: Path) -> None:
    """SQLite rolls back the whole transaction when it is stopped in the middle of a change."""
    with Database(tmp_path, SHORT) as database:
        database.done("CREATE TABLE t (a)")
        database.apply(database.next("INSERT INTO t VALUES (1)"))

        came = database.decide(
            database.next("INSERT INTO t VALUES (2)"), database.next(FILLING), database.next("INSERT INTO t VALUES (3)")
        )

        assert [getattr(each, "kind", "done") for each in came] == ["done", "TooSlow", "done"]
        assert database.rows("SELECT a FROM t") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(("rows", "kind"), [(1_000, "done"), (1_200, "TooSlow")])
def test_a_statement_that_was_used_often_is_not_judged_by_all_its_uses(tmp_path: Path, rows: int, kind: str) -> None:
    """A prepared statement goes on counting from use to use: 17,000 steps are the next time those up to 34,000."""
    some = f"WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
    with Database(tmp_path, Limits(transaction_seconds=3600, steps=10_000)) as database:
        kinds = [getattr(database.run(f"SELECT count(*) FROM ({some})"), "kind", "done") for _ in range(5)]

    assert kinds == [kind] * 5


def test_a_result_that_is_too_large_is_a_failure(tmp_path: Path) -> None:
    with Database(tmp_path, SHORT) as database:
        assert database.fails("SELECT hex(zeroblob(6000))").kind == "TooLarge"
        assert database.fails("SELECT hex(zeroblob(3000))", "SELECT hex(zeroblob(3000))").kind == "TooLarge"
        database.done("SELECT hex(zeroblob(3000))")


def test_an_endless_query_and_an_endless_trial_are_stopped(tmp_path: Path) -> None:
    with Database(tmp_path, SHORT) as database:
        database.done("CREATE TABLE t (a)")
        for reply in (database.ask(ENDLESS), database.try_out(ENDLESS), database.try_out(FILLING)):
            assert isinstance(reply, Failure)
            assert reply.kind == "TooSlow"

        database.done("INSERT INTO t VALUES (1)")
        assert database.rows("SELECT a FROM t") == [(1,)]


def test_a_query_of_few_and_long_steps_is_stopped_in_time(tmp_path: Path) -> None:
    """Ten thousand of these would take minutes."""
    long = ENDLESS.replace("max(i)", "max(length(hex(zeroblob(8000000 + i % 2))))")
    with Database(tmp_path, SHORT) as database:
        began = time.monotonic()
        reply = database.ask(long)

        assert isinstance(reply, Failure)
        assert reply.kind == "TooSlow"
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("matches", ["LIKE", "GLOB"])
def test_a_pattern_that_would_take_minutes_to_match_is_refused_alike(tmp_path: Path, matches: str) -> None:
    text, pattern = "a" * 300_000, "a" * 49_000
    with Database(tmp_path) as database:
        sql = f"SELECT ? {matches} '%' || ? || 'b'"
        asked, ordered = database.ask(sql, text, pattern), database.fails(Statement(sql, (text, pattern)))

        assert isinstance(asked, Failure)
        assert asked.message == ordered.message == "LIKE or GLOB pattern too complex"
        assert database.rows(f"SELECT 'x' {matches} '{'y' * 500}'") == [(0,)]


def test_results_of_queries_are_limited(tmp_path: Path) -> None:
    with Database(tmp_path, Limits(result_bytes=1_000)) as database:
        reply = database.ask("SELECT hex(zeroblob(?))", 600)

        assert isinstance(reply, Failure)
        assert reply.kind == "TooLarge"


def test_a_long_outcome_is_told_once_and_then_only_its_verdict(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        action = database.next(Statement("SELECT hex(zeroblob(3000))"))
        (first,) = database.apply(action)
        (again,) = database.apply(action)

        assert len(first.value) > 6000
        assert (again.value, again.is_again, again.is_whole, again.verdict) == (b"", True, False, first.verdict)
        database.commit()
