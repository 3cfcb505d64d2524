"""Checkpoints: what is committed becomes durable soon, the log stays short, and nobody waits for that."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event

import apsw
import pytest

from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.wal import Wal
from greenline.kernel.database import Open, Opened, Query, Rows
from tests.database.sqlite.replicas import ENDLESS, Replica, question, write_until_the_log_begins_anew

SHORT = Limits(wal_bytes=100_000, wal_restart_bytes=400_000)


def durable(replica: Replica) -> int:
    return replica.ask(Opened, Open()).durable


def wait_until_durable(replica: Replica, position: int) -> None:
    """Fails by running into the limit of the test."""
    until = time.monotonic() + 10
    while durable(replica) < position:
        assert time.monotonic() < until, f"{position} does not become durable"
        time.sleep(0.005)


def test_what_is_committed_is_durable_a_moment_later_though_nothing_follows(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(checkpoint_seconds=0.05)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        wait_until_durable(replica, 1)


def test_commits_say_what_is_durable_and_that_is_never_more_than_what_is_committed(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(checkpoint_seconds=0.01)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        last = 0
        while last < 3:
            replica.execute("INSERT INTO notes VALUES (1)")
            committed = replica.commit()
            assert last <= committed.durable <= committed.position
            last = committed.durable


def test_nothing_is_durable_before_its_time(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(checkpoint_seconds=1000)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        assert durable(replica) == 0


def test_a_copy_of_the_files_without_the_log_has_what_was_checkpointed(tmp_path: Path) -> None:
    """The main file by itself is a database, of a state that was committed."""
    with Replica(tmp_path / "it", Limits(checkpoint_seconds=0.05)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        wait_until_durable(replica, 1)
        write_until_the_log_begins_anew(replica, most=100)
        wait_until_durable(replica, replica.database.position)
        shutil.copy(tmp_path / "it" / "greenline.db", tmp_path / "copy")
        copy = apsw.Connection(str(tmp_path / "copy"))
        assert copy.pragma("integrity_check") == "ok"


def test_under_steady_writing_the_log_begins_anew(tmp_path: Path) -> None:
    with Replica(tmp_path, SHORT) as replica:
        replica.execute("CREATE TABLE notes (n)")
        assert write_until_the_log_begins_anew(replica)
        assert write_until_the_log_begins_anew(replica)
        ((count, total),) = replica.rows("SELECT count(*), max(n) FROM notes")
        assert count == replica.database.position - 1
        assert total


def test_the_log_does_not_begin_anew_under_a_query_and_does_so_after_it(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(wal_bytes=100_000, wal_restart_bytes=400_000, query_seconds=0.5)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(f"SELECT count(*) FROM notes, ({ENDLESS})")), answers.put)
        assert write_until_the_log_begins_anew(replica)
        assert isinstance(answers.get(timeout=10), Rows), "it was answered before"


@pytest.mark.parametrize("is_dirty", [False, True])
def test_the_log_begins_anew_though_somebody_reads_at_every_moment(tmp_path: Path, is_dirty: bool) -> None:
    """Each query ends in time, but before it does the next one has begun: those to come have to wait for once."""
    limits = Limits(wal_bytes=100_000, wal_restart_bytes=400_000, wal_most_bytes=800_000, query_seconds=0.3)
    with Replica(tmp_path, limits) as replica:
        replica.execute("CREATE TABLE notes (n)")
        is_enough = Event()

        def ask_again_and_again(query: Query) -> None:
            if not is_enough.is_set():
                replica.database.ask(query, lambda _: ask_again_and_again(query))

        endless = question(f"SELECT count(*) FROM notes, ({ENDLESS})")
        ask_again_and_again(Query(endless))
        time.sleep(limits.query_seconds / 2)  # so that one is half done when the other begins
        ask_again_and_again(Query(endless, is_dirty))
        assert [bool(write_until_the_log_begins_anew(replica, most=5000)) for _ in range(3)] == [True] * 3
        is_enough.set()


def test_a_file_is_replaced_and_closed_while_queries_are_held_up(tmp_path: Path) -> None:
    """Who holds them up is itself held up by a query that takes its time."""
    limits = Limits(wal_bytes=10_000, wal_restart_bytes=40_000, wal_most_bytes=80_000, query_seconds=60)
    with Replica(tmp_path / "source") as source, Replica(tmp_path / "it", limits) as replica:
        source.execute("CREATE TABLE notes (n)")
        held = source.hold()
        replica.execute("CREATE TABLE notes (n)")
        endless = question(f"SELECT count(*) FROM notes, ({ENDLESS})")
        replica.database.ask(Query(endless), lambda _: None)
        write_until_queries_are_held_up(replica)
        replica.fetch(source, held)
        assert replica.restore(held).position == 1
        write_until_queries_are_held_up(replica)


def write_until_queries_are_held_up(replica: Replica) -> None:
    answers: SimpleQueue[object] = SimpleQueue()
    for _ in range(500):
        replica.execute("INSERT INTO notes VALUES (zeroblob(4000))")
        replica.database.ask(Query(question("SELECT 1")), answers.put)
        try:
            answers.get(timeout=0.5)
        except Empty:
            return
    raise AssertionError("no query had to wait")


def test_a_log_that_had_to_be_long_is_short_again_afterwards(tmp_path: Path) -> None:
    limits = Limits(wal_bytes=100_000, wal_restart_bytes=400_000, query_seconds=0.5)
    with Replica(tmp_path, limits) as replica:
        replica.execute("CREATE TABLE notes (n)")
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(Query(question(f"SELECT count(*) FROM notes, ({ENDLESS})")), answers.put)
        while answers.empty() or replica.log_bytes < 2 * limits.wal_restart_bytes:
            replica.execute("INSERT INTO notes VALUES (zeroblob(20000))")
        assert write_until_the_log_begins_anew(replica)
        replica.execute("INSERT INTO notes VALUES (1)")
        assert replica.log_bytes <= limits.wal_restart_bytes


def test_a_database_is_closed_while_the_log_is_long_and_a_transaction_open(tmp_path: Path) -> None:
    with Replica(tmp_path, Limits(wal_bytes=1, wal_restart_bytes=1)) as replica:
        replica.execute("CREATE TABLE notes (n)")
        for n in range(50):
            replica.execute("INSERT INTO notes VALUES (?)", n)
    with Replica(tmp_path) as replica:
        assert replica.rows("SELECT count(*) FROM notes") == [(50,)]


def test_the_newest_version_of_every_page_is_found_in_the_log_or_in_the_file(tmp_path: Path) -> None:
    """The plain twin: what a connection that reads the same state says."""
    path = tmp_path / "it.db"
    writer, reader = apsw.Connection(str(path)), apsw.Connection(str(path))
    writer.pragma("journal_mode", "wal")
    writer.pragma("wal_autocheckpoint", 0)
    writer.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    wal = Wal(path)
    for n in range(40):
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO t (b) VALUES (randomblob(?))", [(200 + n,)] * 50)
        writer.execute("UPDATE t SET b = randomblob(100) WHERE a % 40 = ?", (n,))
        writer.execute("ROLLBACK" if n % 7 == 3 else "COMMIT")
        if n % 5 == 4:
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        reader.execute("BEGIN")
        pages = reader.pragma("page_count")
        extent = wal.extent()
        newest = wal.newest(extent)
        image = reader.serialize("main")
        for page in range(1, pages + 1):
            place = newest.get(page)
            file, at = (wal.log, place) if place is not None else (wal.main, (page - 1) * extent.page_size)
            assert _read(file, at, extent.page_size) == image[(page - 1) * extent.page_size : page * extent.page_size]
        reader.execute("ROLLBACK")
    writer.close()
    reader.close()
    wal.close()


def _read(file: int, at: int, size: int) -> bytes:
    with open(file, "rb", closefd=False) as opened:
        opened.seek(at)
        return opened.read(size)
