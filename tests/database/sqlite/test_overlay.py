"""The overlay: dirty queries see what is red on top of what is green, and nobody else notices."""

from __future__ import annotations

import random
import time
from pathlib import Path
from queue import SimpleQueue

from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, OutcomeOf, Verdict
from greenline.kernel.database import Applied, Apply, Commit, Opened, Overlay, Query, Rows
from greenline.kernel.statements import Failure, Result, Statement, Trial, Work, encode, reply_of
from tests.database.sqlite.replicas import Replica, action, bundle, question, write_until_the_log_begins_anew

Bundle = tuple[bytes, ...]

UNTIL_STOPPED = """
WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE NOT EXISTS (SELECT 1 FROM stops))
SELECT count(*) FROM n
"""
"""It runs for ever in a state in which nothing stops it, and ends at once in any other."""


def lay_over(replica: Replica, *bundles: Bundle) -> None:
    replica.ask(Opened, Overlay(bundles))


def notes(*numbers: int) -> Bundle:
    return bundle(*(action(f"d{n}", 1, "INSERT INTO notes VALUES (?)", n) for n in numbers))


def dirty(replica: Replica) -> list[object]:
    return [number for (number,) in replica.rows("SELECT n FROM notes ORDER BY n", is_dirty=True)]


def green(replica: Replica) -> list[object]:
    return [number for (number,) in replica.rows("SELECT n FROM notes ORDER BY n")]


def with_notes(directory: Path, limits: Limits = Limits()) -> Replica:  # noqa: B008
    replica = Replica(directory, limits)
    replica.execute("CREATE TABLE notes (n INTEGER)")
    replica.execute("CREATE TABLE stops (n INTEGER)")
    replica.execute("INSERT INTO notes VALUES (0)")
    return replica


# What it shows.


def test_dirty_queries_see_red_on_top_of_green_and_others_do_not(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        before = replica.digest()
        lay_over(replica, notes(1, 2), notes(3))
        assert dirty(replica) == [0, 1, 2, 3]
        assert green(replica) == [0]
        lay_over(replica, notes(1, 2))
        assert dirty(replica) == [0, 1, 2]
        lay_over(replica)
        assert dirty(replica) == [0]
        assert replica.digest() == before


def test_it_comes_to_what_the_same_bundles_come_to_when_they_are_green(tmp_path: Path) -> None:
    """Whatever they are: failures, repetitions, changes of the schema, rollbacks of their own."""
    rng = random.Random(7)
    statements = [
        "INSERT INTO notes VALUES (random() % 100)",
        "INSERT INTO once VALUES (abs(random()) % 20)",
        "INSERT OR ROLLBACK INTO once VALUES (abs(random()) % 20)",
        "UPDATE notes SET n = n + 1 WHERE n % 3 = 0",
        "DELETE FROM notes WHERE n % 7 = 0",
        "CREATE TABLE IF NOT EXISTS later (a, b DEFAULT CURRENT_TIMESTAMP)",
        "INSERT INTO later (a) SELECT n FROM notes",
        "ALTER TABLE later ADD COLUMN c",
        "nonsense",
    ]

    def some(n: int) -> Bundle:
        picked = [(f"s{rng.randrange(6)}", rng.choice(statements)) for _ in range(rng.randrange(1, 6))]
        work = [Work(n * 1_000_000, rng.randrange(100), (Statement(sql),)) for _, sql in picked]
        return bundle(*(Action(name, 1 + n // 4, encode(each)) for (name, _), each in zip(picked, work, strict=True)))

    bundles = [some(n) for n in range(60)]
    with with_notes(tmp_path / "red") as red, with_notes(tmp_path / "green") as other:
        for replica in (red, other):
            replica.execute("CREATE TABLE once (n UNIQUE)")
        questions = ["SELECT * FROM notes", "SELECT * FROM once", "SELECT name, sql FROM sqlite_schema ORDER BY name"]
        lay_over(red, *bundles)
        seen = [red.rows(each, is_dirty=True) for each in questions]
        later = red.reply("SELECT * FROM later", is_dirty=True)
        for each in bundles:
            other.ask(Applied, Apply(other.database.position + 1, each))
            other.commit()
        assert seen == [other.rows(each) for each in questions]
        assert later == other.reply("SELECT * FROM later")
        assert all(seen), "something came of it"


def test_requests_that_are_decided_or_stand_there_twice_count_once(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        replica.apply(action("d1", 1, "INSERT INTO notes VALUES (1)"))
        replica.commit()
        lay_over(replica, notes(1), notes(2), notes(2, 1))
        assert dirty(replica) == [0, 1, 2]


def test_what_became_of_a_red_request_is_told_to_who_asks_dirty(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        lay_over(replica, notes(1))
        asked = OutcomeOf("d1", 1)
        assert [replica.ask(Rows, Query(asked, is_dirty)).outcome.verdict for is_dirty in (True, False)] == [  # type: ignore[union-attr]
            Verdict.DONE,
            Verdict.UNKNOWN,
        ]


def test_a_dirty_trial_sees_the_reds_and_is_undone(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        lay_over(replica, notes(1))
        work = Work(0, 0, (Statement("INSERT INTO notes VALUES (9)"), Statement("SELECT n FROM notes ORDER BY n")))
        tried = reply_of(replica.ask(Rows, Query(encode(Trial(work)), is_dirty=True)).rows)
        assert isinstance(tried, Result)
        assert tried.rows == ((0,), (1,), (9,))
        assert dirty(replica) == [0, 1]


def test_a_dirty_query_changes_nothing(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        assert isinstance(replica.reply("DELETE FROM notes", is_dirty=True), Failure)
        assert dirty(replica) == [0]


def test_it_sees_all_that_was_applied_or_was_to_be_when_it_was_asked(tmp_path: Path) -> None:
    """What is given to be applied is not laid over any more: one of the two must show it."""
    with with_notes(tmp_path) as replica:
        lay_over(replica, notes(3))
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Apply(4, notes(1)), answers.put)
        replica.database.ask(Query(question("SELECT 1")), answers.put)  # it waits for a commit, so the next is held
        replica.database.ask(Apply(5, notes(2)), answers.put)
        seen: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question("SELECT n FROM notes ORDER BY n"), is_dirty=True), seen.put)
        replica.database.ask(Commit(4), answers.put)
        while replica.database.position < 5:
            answers.get(timeout=10)
        replica.database.ask(Commit(5), answers.put)
        rows = seen.get(timeout=10)
        assert isinstance(rows, Rows)
        reply = reply_of(rows.rows)
        assert isinstance(reply, Result)
        assert rows.position == 5
        assert reply.rows == ((0,), (1,), (2,), (3,))


def test_an_overlay_that_grows_is_not_begun_again(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        overlay = replica.database._beside._overlay
        lay_over(replica, notes(1))
        assert dirty(replica) == [0, 1]
        layer = overlay._layer
        lay_over(replica, notes(1), notes(2))
        assert dirty(replica) == [0, 1, 2]
        assert overlay._layer is layer
        lay_over(replica, notes(2), notes(1))
        assert dirty(replica) == [0, 1, 2]
        assert overlay._layer is not layer, "in another order it may come to something else"


# What it does to others: nothing.


def test_thousands_of_reds_do_not_touch_the_log_and_are_on_no_disk_afterwards(tmp_path: Path) -> None:
    with with_notes(tmp_path) as replica:
        before, files = replica.log_bytes, sorted(path.name for path in tmp_path.iterdir())
        lay_over(
            replica,
            *(
                bundle(*(action(f"s{n}", m, "INSERT INTO notes VALUES (?)", n) for m in range(1, 11)))
                for n in range(3000)
            ),
        )
        assert replica.rows("SELECT count(*), sum(n) FROM notes", is_dirty=True) == [(30001, 10 * sum(range(3000)))]
        layer = replica.database._beside._overlay._layer
        assert layer is not None
        assert layer.written_bytes > 200_000
        assert replica.log_bytes == before
        assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_bundles_are_applied_and_committed_while_a_dirty_query_runs_for_ever(tmp_path: Path) -> None:
    with with_notes(tmp_path, Limits(dirty_attempts=0, query_seconds=60)) as replica:
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(UNTIL_STOPPED), is_dirty=True), answers.put)
        for n in range(1, 20):
            replica.execute("INSERT INTO notes VALUES (?)", n)
        assert green(replica) == list(range(20))
        assert answers.empty()


def test_a_dirty_query_that_runs_long_is_begun_again_when_something_is_committed(tmp_path: Path) -> None:
    with with_notes(tmp_path, Limits(query_seconds=60)) as replica:
        lay_over(replica, notes(1))
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(UNTIL_STOPPED), is_dirty=True), answers.put)
        replica.execute("INSERT INTO notes VALUES (7)")
        replica.execute("INSERT INTO stops VALUES (1)")
        rows = answers.get(timeout=10)
        assert isinstance(rows, Rows)
        assert rows.position == replica.database.position
        assert isinstance(reply_of(rows.rows), Result)
        assert dirty(replica) == [0, 1, 7]


def test_after_some_attempts_it_goes_on_with_what_it_has(tmp_path: Path) -> None:
    """Else, under steady commits, a query that takes longer than the time between two would never be answered."""
    with with_notes(tmp_path, Limits(query_seconds=0.5, dirty_attempts=2)) as replica:
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(UNTIL_STOPPED), is_dirty=True), answers.put)
        until = time.monotonic() + 30
        while answers.empty() and time.monotonic() < until:
            replica.execute("INSERT INTO notes VALUES (1)")
        rows = answers.get(timeout=1)
        assert isinstance(rows, Rows)
        reply = reply_of(rows.rows)
        assert isinstance(reply, Failure)
        assert reply.kind == "TooSlow"
        assert rows.position < replica.database.position
        assert dirty(replica) == green(replica)


def test_the_log_is_not_pinned_by_an_overlay_of_yesterday(tmp_path: Path) -> None:
    with with_notes(tmp_path, Limits(wal_bytes=100_000, wal_restart_bytes=400_000)) as replica:
        lay_over(replica, notes(1))
        dirty(replica)
        assert write_until_the_log_begins_anew(replica)
        assert len(dirty(replica)) == len(green(replica)) + 1


def test_a_database_is_closed_while_a_dirty_query_runs_or_waits(tmp_path: Path) -> None:
    with with_notes(tmp_path, Limits(query_seconds=60)) as replica:
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(UNTIL_STOPPED), is_dirty=True), answers.put)
        replica.apply(action("s", 1, "INSERT INTO notes VALUES (1)"))
        replica.database.ask(Query(question("SELECT 1"), is_dirty=True), answers.put)
    with Replica(tmp_path) as replica:
        assert green(replica) == [0]
