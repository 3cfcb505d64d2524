"""Readers: queries see one committed state, of all that was applied, change nothing, and end in time."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest

from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import OutcomeOf, Verdict
from greenline.kernel.database import Applied, Apply, Commit, Committed, Query, Rows
from greenline.kernel.statements import Failure, Reply, Result, reply_of
from tests.database.sqlite.replicas import ENDLESS, Replica, action, bundle, question


def test_a_query_waits_for_the_commit_of_what_was_applied_when_it_was_asked(tmp_path: Path) -> None:
    with Replica(tmp_path) as replica:
        replica.execute("CREATE TABLE t (a)")
        replica.apply(action("s", 1, "INSERT INTO t VALUES (1)"))
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question("SELECT a FROM t")), answers.put)
        replica.commit()
        rows = answers.get(timeout=10)
        assert isinstance(rows, Rows)
        assert rows.position == replica.database.position == 2
        assert _rows(reply_of(rows.rows)) == ((1,),)


def test_what_is_asked_to_be_applied_while_a_query_waits_is_applied_after_the_commit_that_it_waits_for(
    tmp_path: Path,
) -> None:
    """Else the transaction would grow as fast as commits are asked for, and the query would never be answered."""
    with Replica(tmp_path) as replica:
        replica.execute("CREATE TABLE t (a)")
        replica.apply(action("s", 1, "INSERT INTO t VALUES (1)"))
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question("SELECT count(*) FROM t")), answers.put)
        replica.database.ask(Apply(3, bundle(action("s", 2, "INSERT INTO t VALUES (2)"))), answers.put)
        replica.database.ask(Commit(2), answers.put)
        first, second, third = (answers.get(timeout=10) for _ in range(3))
        said = {type(each): each for each in (first, second, third)}
        assert set(said) == {Rows, Applied, Committed}
        rows = said[Rows]
        assert isinstance(rows, Rows)
        assert rows.position == 2
        assert _rows(reply_of(rows.rows)) == ((1,),)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (2)",
        "DELETE FROM t RETURNING a",
        "CREATE TABLE u (a)",
        "DROP TABLE t",
        "PRAGMA user_version = 7",
        "PRAGMA query_only = OFF",
        "ATTACH 'other' AS other",
        "BEGIN",
        "COMMIT",
        "VACUUM",
    ],
)
def test_a_query_changes_nothing(tmp_path: Path, sql: str) -> None:
    with Replica(tmp_path) as replica:
        replica.execute("CREATE TABLE t (a)")
        replica.execute("INSERT INTO t VALUES (1)")
        before = replica.digest()
        assert isinstance(replica.reply(sql), Failure)
        assert replica.digest() == before
        assert replica.rows("SELECT a FROM t") == [(1,)]


def test_a_query_that_takes_too_long_is_told_so_and_others_go_on(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(query_seconds=0.3, readers=2)) as replica:
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(ENDLESS)), answers.put)
        assert replica.rows("SELECT 1") == [(1,)]
        rows = answers.get(timeout=10)
        assert isinstance(rows, Rows)
        assert _kind(reply_of(rows.rows)) == "TooSlow"
        assert [replica.rows("SELECT 2") for _ in range(4)] == [[(2,)]] * 4


def test_a_result_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(result_bytes=10_000)) as replica:
        assert _kind(replica.reply("SELECT zeroblob(10001)")) == "TooLarge"
        many = "WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i, zeroblob(100) FROM n"
        assert _kind(replica.reply(many)) == "TooLarge"
        assert replica.rows("SELECT 1") == [(1,)]


def test_what_is_no_query_is_told_so(tmp_path: Path) -> None:
    with Replica(tmp_path) as replica:
        assert _kind(reply_of(replica.ask(Rows, Query(b"\xff nonsense")).rows)) == "Garbled"


def test_what_became_of_a_request_is_seen_once_it_is_committed(tmp_path: Path) -> None:
    with Replica(tmp_path) as replica:
        replica.execute("CREATE TABLE t (a)")
        assert _verdict(replica, "s", 1) == Verdict.UNKNOWN
        replica.apply(action("s", 1, "INSERT INTO t VALUES (1)"), action("s", 2, "INSERT INTO nowhere VALUES (1)"))
        replica.commit()
        assert _verdict(replica, "s", 1) == Verdict.DONE
        assert _verdict(replica, "s", 2) == Verdict.FAILED
        assert _verdict(replica, "s", 3) == Verdict.UNKNOWN


def test_a_database_is_closed_while_a_query_runs_and_another_waits_for_a_commit(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(readers=1)) as replica:
        replica.execute("CREATE TABLE t (a)")
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(ENDLESS)), answers.put)
        replica.apply(action("s", 1, "INSERT INTO t VALUES (1)"))
        replica.database.ask(Query(question("SELECT 1")), answers.put)
    with Replica(tmp_path) as replica:
        assert replica.database.position == 1


def _rows(reply: Reply) -> tuple[tuple[object, ...], ...]:
    assert isinstance(reply, Result), reply
    return reply.rows


def _kind(reply: Reply) -> str:
    assert isinstance(reply, Failure), reply
    return reply.kind


def _verdict(replica: Replica, session: str, number: int) -> Verdict:
    outcome = replica.ask(Rows, Query(OutcomeOf(session, number))).outcome
    assert outcome is not None
    return outcome.verdict
