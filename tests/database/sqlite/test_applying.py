"""Bundles are applied and committed, each action by itself, and what is committed is found again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import apsw
import pytest

from greenline.database.sqlite import tables
from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.broken import Broken, Unusable
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, Read, Verdict, digest_of, pack
from greenline.kernel.database import Answer, Applied, Apply, Commit, Committed, Query, Refused, Rows
from greenline.kernel.statements import Conflict, Failure, Member, Question, Result, Role, Statement, encode
from tests.database.sqlite.asking import NOW, Database, work


def test_statements_of_an_action_happen_together_or_not_at_all(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a UNIQUE)", "INSERT INTO t VALUES (1), (2)")

        failure = database.fails("INSERT INTO t VALUES (3)", "INSERT INTO t VALUES (2)")

        assert (failure.kind, failure.message, failure.statement) == (
            "ConstraintUnique",
            "UNIQUE constraint failed: t.a",
            1,
        )
        assert database.rows("SELECT a FROM t") == [(1,), (2,)]


def test_each_statement_says_what_it_came_to(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        results = database.done(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
            Statement("INSERT INTO t (a) VALUES (?), (?)", ("x", b"\x00y")),
            Statement("UPDATE t SET a = :to WHERE id = 2 RETURNING id, a", {"to": 1.5}),
            "SELECT a FROM t WHERE id > 2",
        )

    assert results == (
        Result(0, 0),
        Result(2, 2),
        Result(1, 2, ("id", "a"), ((2, 1.5),)),
        Result(0, 2, ("a",), ()),
    )


def test_columns_are_those_of_the_schema_as_it_is(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)", "SELECT * FROM t")
        database.done("ALTER TABLE t ADD COLUMN b")

        assert database.done("SELECT * FROM t")[0].columns == ("a", "b")


def test_a_statement_that_comes_to_something_else_than_was_seen_is_a_conflict(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
        seen = database.try_out("SELECT a FROM t")
        assert isinstance(seen, Result)
        read = Statement("SELECT a FROM t", (), seen.seen)

        assert isinstance(database.run(read, "UPDATE t SET a = 2"), tuple)
        assert database.run(read, "UPDATE t SET a = 3") == Conflict(0)
        assert database.rows("SELECT a FROM t") == [(2,)]


def test_what_was_read_before_must_still_be_read(tmp_path: Path) -> None:
    question = encode(Question(NOW, 7, Statement("SELECT a FROM t")))
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
        answer = database.sqlite.answer(Query(question))
        assert isinstance(answer, Rows)
        reads = (Read(question, digest_of(answer.rows)),)
        first, second = (Action("c", n, encode(work("UPDATE t SET a = a + 1")), reads=reads) for n in (1, 2))

        assert [outcome.verdict.value for outcome in database.apply(first, second)] == ["done", "conflict"]
        database.commit()
        assert database.rows("SELECT a FROM t") == [(2,)]


def test_a_trial_leaves_nothing(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
        before = database.digest()

        tried = database.try_out("INSERT INTO t VALUES (1)", "CREATE TABLE u (b)", "SELECT count(*) FROM t, u")

        assert isinstance(tried, Result)
        assert tried.rows == ((0,),)
        assert database.digest() == before
        assert isinstance(database.ask("SELECT * FROM u"), Failure)


def test_a_query_that_would_change_something_is_refused(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")

        refused = database.ask("INSERT INTO t VALUES (1)")

        assert isinstance(refused, Failure)
        assert "send it as an action" in refused.message


def test_what_rolls_back_the_whole_transaction_costs_only_the_action_that_did_it(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a UNIQUE)")
        database.apply(database.next("INSERT INTO t VALUES (1)"))
        outcomes = database.apply(
            database.next("INSERT INTO t VALUES (2)"),
            database.next("INSERT OR ROLLBACK INTO t VALUES (1)"),
            database.next("INSERT INTO t VALUES (3)"),
            database.next("INSERT OR ROLLBACK INTO t VALUES (3)"),
        )
        database.commit()

        assert [outcome.verdict.value for outcome in outcomes] == ["done", "failed", "done", "failed"]
        assert database.rows("SELECT a FROM t") == [(1,), (2,), (3,)]


def test_a_deferred_key_is_kept_by_each_action(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done(
            "CREATE TABLE p (id INTEGER PRIMARY KEY)",
            "CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
        )
        orphan, parent = database.next("INSERT INTO c VALUES (1)"), database.next("INSERT INTO p VALUES (1)")

        first, second = database.decide(orphan, parent)

        assert isinstance(first, Failure)
        assert first.kind == "ConstraintForeignkey"
        assert isinstance(second, tuple)
        assert isinstance(database.run("INSERT INTO c VALUES (2)", "INSERT INTO p VALUES (2)"), tuple)


def test_a_chunk_that_cannot_be_opened_fails_and_the_others_do_not(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        good = pack((database.next("CREATE TABLE t (a)"),))
        bad = pack((Action("x", 1, b""), Action("x", 2, b"")))[:-3]

        applied = database.sqlite.answer(Apply(1, (bad, good)))

        assert isinstance(applied, Applied)
        assert [outcome.verdict.value for outcome in applied.replies] == ["failed", "failed", "done"]


def test_a_body_that_is_none_fails(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        (failure,) = database.decide(Action("x", 1, b"\x93nonsense"))

        assert isinstance(failure, Failure)
        assert failure.kind == "Garbled"


def test_users_and_members_are_rows_that_can_be_read(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.decide(
            database.next(body=Role("ann", "write", "scrypt$1")),
            database.next(body=Role("bob", "read", "scrypt$2")),
            database.next(body=Member("p", "h:1", "h:2", "h:3")),
        )
        database.decide(database.next(body=Role("bob", "read", "")))

        assert database.rows("SELECT name, role FROM greenline_roles") == [("ann", "write")]
        assert database.rows("SELECT * FROM greenline_members") == [("p", "h:1", "h:2", "h:3")]


@pytest.mark.parametrize("position", [0, 1, 3])
def test_no_position_is_skipped_or_repeated(tmp_path: Path, position: int) -> None:
    with Database(tmp_path) as database:
        database.decide(database.next("CREATE TABLE t (a)"))

        refused = database.sqlite.answer(Apply(position, ()))

        assert isinstance(refused, Refused)
        assert "skipped or repeated" in refused.reason


def test_commits_that_come_while_more_is_applied_are_answered_when_all_may_be_committed(tmp_path: Path) -> None:
    answers: SimpleQueue[Answer | Broken] = SimpleQueue()
    with Database(tmp_path) as database:
        for _ in range(3):
            database.apply()
        database.sqlite.ask(Commit(1), answers.put)
        database.sqlite.ask(Commit(2), answers.put)
        assert database.opened().position == 3  # the writer has been through both
        assert answers.empty()

        database.sqlite.ask(Commit(3), answers.put)

        told = [answers.get() for _ in range(3)]
        assert [each.position for each in told if isinstance(each, Committed)] == [3, 3, 3]


def test_a_transaction_that_is_old_takes_no_more_until_it_is_committed(tmp_path: Path) -> None:
    answers: SimpleQueue[Answer | Broken] = SimpleQueue()
    with Database(tmp_path, Limits(transaction_seconds=0)) as database:
        database.apply()
        database.sqlite.ask(Apply(2, ()), answers.put)
        assert database.opened().position == 1

        database.sqlite.answer(Commit(1))

        second = answers.get()
        assert isinstance(second, Applied)
        assert (second.position, database.sqlite.committed) == (2, 1)


def test_what_is_committed_is_found_again_and_what_was_only_applied_is_not(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
        before, digest = database.opened(), database.digest()
        database.apply(database.next("INSERT INTO t VALUES (2)"))

    with Database(tmp_path) as database:
        opened = database.opened()
        assert (opened.position, opened.outcomes, opened.durable) == (1, before.outcomes, 1)
        assert database.digest() == digest
        assert database.rows("SELECT a FROM t") == [(1,)]


def test_replicas_that_applied_the_same_are_equal_whenever_they_commit_and_restart(tmp_path: Path) -> None:
    actions = [
        Action("s", number, encode(work(sql)))
        for number, sql in enumerate(
            (
                "CREATE TABLE t (a UNIQUE, b DEFAULT (random()), c DEFAULT CURRENT_TIMESTAMP)",
                *(f"INSERT INTO t (a) VALUES ({value})" for value in (1, 2, 3, 2, 4, 5)),
                "INSERT OR ROLLBACK INTO t (a) VALUES (1)",
                "DELETE FROM t WHERE a = 3",
            ),
            1,
        )
    ]
    with Database(tmp_path / "p") as p:
        for action in actions:
            p.apply(action)
        p.commit()
        together = p.opened().outcomes, p.digest()
    for action in actions:
        with Database(tmp_path / "q") as q:
            q.decide(action)

    with Database(tmp_path / "q") as q:
        assert (q.opened().outcomes, q.digest()) == together


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.database.sqlite.asking import Database
database = Database(Path(sys.argv[1]))
database.done("CREATE TABLE t (a)")
for number in range(20):
    database.done(f"INSERT INTO t VALUES ({number})")
database.apply(database.next("INSERT INTO t VALUES (99)"))
print("applied", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_what_it_has_committed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "applied\n"), ended.stderr

    with Database(tmp_path) as database:
        assert database.opened().position == 21
        assert database.opened().durable == 21
        assert database.rows("SELECT count(*), max(a) FROM t") == [(20, 19)]
        assert isinstance(database.run("INSERT INTO t VALUES (20)"), tuple)


def test_a_database_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    with Database(tmp_path), pytest.raises(Unusable, match="in use by another process: stop that one"):
        Sqlite(tmp_path)


@pytest.mark.parametrize("content", [b"not a database at all, but some text that is long enough" * 100])
def test_a_file_that_is_no_database_is_not_opened(tmp_path: Path, content: bytes) -> None:
    (tmp_path / tables.FILE).write_bytes(content)

    with pytest.raises(Unusable, match=r"is damaged .* move it away and join again"):
        Sqlite(tmp_path)


def test_a_damaged_database_is_not_opened(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
    file = tmp_path / tables.FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + b"\xff" * 3996 + whole[4096:])

    with pytest.raises(Unusable, match="is damaged"):
        Sqlite(tmp_path)


def test_another_programs_database_is_not_taken_over(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / tables.FILE))
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()

    with pytest.raises(Unusable, match="not one of Greenline's"):
        Sqlite(tmp_path)


def test_relaxed_sql_is_refused_by_name(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        (outcome,) = database.apply(Action("s", 1, encode(work("CREATE TABLE t (a)")), is_relaxed=True))

        assert outcome.verdict is Verdict.FAILED
        assert b"its place in the order matters" in outcome.value
