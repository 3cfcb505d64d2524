"""Snapshots: what is held, what travels, and how one database becomes another, or stays what it was."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import apsw
import pytest

from greenline.database.sqlite import images
from greenline.database.sqlite.broken import Broken
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import digest_of
from greenline.kernel.database import (
    Apply,
    Open,
    Opened,
    Overlay,
    Query,
    Restore,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotEnd,
    SnapshotHeld,
)
from greenline.kernel.statements import Result, reply_of
from tests.database.sqlite.replicas import ENDLESS, Replica, action, bundle, question

INSERT = "INSERT INTO notes VALUES (?, ?, ?)"


def lived_in(directory: Path, limits: Limits = Limits(), rows: int = 400) -> Replica:  # noqa: B008
    """With some hundred pages, of rows that are equal wherever it is made."""
    replica = Replica(directory, limits)
    replica.execute("CREATE TABLE notes (n INTEGER PRIMARY KEY, text, key)")
    replica.execute("CREATE INDEX by_key ON notes (key)")
    rng = random.Random(5)
    for start in range(0, rows, 100):
        values = [(n, rng.randbytes(500), rng.random()) for n in range(start, min(start + 100, rows))]
        inserts = [action(f"s{n % 20}", n // 20 + 1, INSERT, n, text, key) for n, text, key in values]
        replica.apply(*inserts)
        replica.commit()
    return replica


def large(directory: Path) -> Replica:
    """Some thousand pages."""
    replica = lived_in(directory, rows=20)
    replica.execute(
        "WITH n (i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n LIMIT 8000)"
        " INSERT INTO notes SELECT i, zeroblob(400) || i, i % 100 FROM n"
    )
    return replica


def copied(source: Replica, target: Replica, basis: bytes = b"") -> Opened:
    held = source.hold()
    target.fetch(source, held)
    return target.restore(held, basis)


# What is held.


def test_a_snapshot_is_of_what_is_committed_and_stays_what_it_was(tmp_path: Path) -> None:
    with lived_in(tmp_path) as replica:
        replica.apply(action("x", 1, "DELETE FROM notes"))
        held = replica.hold()
        assert held.position == replica.database.committed == replica.database.position - 1
        replica.commit()
        for number, digest in enumerate(held.digests):
            assert digest_of(replica.chunk(held, number)) == digest


def test_a_snapshot_is_let_go_for_another_and_at_the_end(tmp_path: Path) -> None:
    with lived_in(tmp_path) as replica:
        held = replica.hold()
        assert "no chunk" in replica.why_refused(SnapshotChunk(held.position, len(held.digests)))
        assert "no chunk" in replica.why_refused(SnapshotChunk(held.position, -1))
        replica.execute("DELETE FROM notes")
        later = replica.hold()
        assert "is held" in replica.why_refused(SnapshotChunk(held.position, 0))
        assert replica.ask(Opened, SnapshotEnd()) == replica.ask(Opened, Open())
        assert "is held" in replica.why_refused(SnapshotChunk(later.position, 0))
        replica.hold()
    with Replica(tmp_path) as replica:
        assert "is held" in replica.why_refused(SnapshotChunk(later.position, 0)), "not in the next life"
        assert not (tmp_path / "snapshots" / "held").exists()


def test_chunks_are_bounded(tmp_path: Path) -> None:
    with lived_in(tmp_path) as replica:
        replica.execute("UPDATE notes SET text = zeroblob(3000)")
        held = replica.hold()
        sizes = [len(replica.chunk(held, number)) for number in range(len(held.digests))]
        assert max(sizes) <= images.LONGEST_CHUNK * 4096
        assert len(sizes) > 10


# What travels.


def test_replicas_that_applied_the_same_have_the_same_chunks_however_they_committed(tmp_path: Path) -> None:
    with lived_in(tmp_path / "one") as one, Replica(tmp_path / "other", Limits(transaction_seconds=60)) as other:
        copied(one, other)
        for n in range(60):
            each = bundle(
                action(f"t{n % 7}", n // 7 + 1, "INSERT INTO notes (text, key) VALUES (zeroblob(300), random())")
            )
            for replica in (one, other):
                replica.database.answer(Apply(replica.database.position + 1, each))
            one.commit()
        other.commit()
        assert one.digest() == other.digest()
        assert one.hold().digests == other.hold().digests


def test_one_that_was_restored_has_nearly_all_chunks_of_the_others(tmp_path: Path) -> None:
    """It has other free pages than they, and so takes others; but what is on them is the same."""
    with large(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        one.execute("DELETE FROM notes WHERE n % 2000 < 500")
        copied(one, other)
        for replica in (one, other):
            for n in range(100):
                replica.execute("INSERT INTO notes (text, key) VALUES (zeroblob(400), ?)", n / 100)
        assert one.digest() == other.digest()
        held = one.hold()
        lacking = sum(len(one.chunk(held, number)) for number in other.lacks(held))
        assert lacking < 0.2 * sum(len(one.chunk(held, number)) for number in range(len(held.digests)))


def test_what_did_not_change_does_not_travel_again(tmp_path: Path) -> None:
    with large(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        copied(one, other)
        one.execute("UPDATE notes SET key = 2 WHERE n = 9000")
        held = one.hold()
        assert 0 < len(other.lacks(held)) < len(held.digests) / 10
        other.fetch(one, held)
        other.restore(held)
        assert other.digest() == one.digest()


def test_a_transfer_goes_on_with_another_source_after_a_crash(tmp_path: Path) -> None:
    with large(tmp_path / "one") as one, Replica(tmp_path / "two") as two:
        copied(one, two)
        held = one.hold()
        with Replica(tmp_path / "new") as new:
            half = new.lacks(held)[::2]
            for number in half:
                new.stage(one.chunk(held, number))
        two.execute("INSERT INTO notes (text) VALUES ('later')")
        later = two.hold()
        with Replica(tmp_path / "new") as new:
            assert len(new.lacks(later)) < len(later.digests) - 0.7 * len(half)
            new.fetch(two, later)
            assert new.restore(later).position == two.database.position
            assert new.digest() == two.digest()
            assert list((tmp_path / "new" / "snapshots" / "staged").iterdir()) == []


# Becoming it.


def test_a_database_becomes_what_the_chunks_say_and_what_was_there_is_gone(tmp_path: Path) -> None:
    with lived_in(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        other.execute("CREATE TABLE mine (a)")
        other.apply(action("x", 1, "INSERT INTO mine VALUES (1)"))
        other.ask(Opened, Overlay((bundle(action("y", 1, "INSERT INTO mine VALUES (2)")),)))
        opened = copied(one, other, b"basis" * 500)
        assert opened.position == opened.durable == one.database.position
        assert opened.basis == b"basis" * 500
        assert other.digest() == one.digest()
        assert not isinstance(other.reply("SELECT * FROM mine"), Result)
        assert other.rows("SELECT count(*) FROM notes", is_dirty=True) == one.rows("SELECT count(*) FROM notes")
        for replica in (one, other):
            replica.execute("INSERT INTO notes (text) VALUES ('next')")
        assert other.digest() == one.digest()
    with Replica(tmp_path / "other") as other:
        assert other.ask(Opened, Open()).basis == b"basis" * 500


def test_the_digest_of_a_state_does_not_depend_on_its_basis_and_snapshots_do_not_have_it(tmp_path: Path) -> None:
    with lived_in(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        copied(one, other, b"first")
        copied(one, other, b"second")
        assert [path.read_bytes() for path in (tmp_path / "other").glob("basis-*")] == [b"second"]
        assert other.digest() == one.digest()
        assert other.hold().digests == one.hold().digests


def test_a_restored_database_is_sound_and_uses_its_free_pages_again(tmp_path: Path) -> None:
    with large(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        one.execute("DELETE FROM notes WHERE n % 2000 < 1500")
        copied(one, other)
        size = (tmp_path / "other" / "greenline.db").stat().st_size
        for n in range(100):
            other.execute("INSERT INTO notes (text) VALUES (zeroblob(1000) || ?)", n)
    assert (tmp_path / "other" / "greenline.db").stat().st_size == size
    assert apsw.Connection(str(tmp_path / "other" / "greenline.db")).pragma("integrity_check") == "ok"


def test_queries_that_run_or_wait_during_a_restore_are_answered_after_it(tmp_path: Path) -> None:
    more = "SELECT i + 1 FROM n WHERE NOT EXISTS (SELECT 1 FROM notes)"
    slow = f"WITH n (i) AS (VALUES (1) UNION ALL {more}) SELECT min(i) FROM n"
    with lived_in(tmp_path / "one") as one, Replica(tmp_path / "other", Limits(query_seconds=60)) as other:
        other.execute("CREATE TABLE notes (a)")
        answers: SimpleQueue[object] = SimpleQueue()
        for is_dirty in (False, False, True):
            other.database.ask(Query(question(slow), is_dirty), answers.put)
        other.apply(action("x", 1, "CREATE TABLE open (a)"))
        other.database.ask(Query(question(slow)), answers.put)
        copied(one, other)
        for _ in range(4):
            rows = answers.get(timeout=10)
            assert isinstance(rows, Rows)
            assert rows.position == one.database.position
            assert reply_of(rows.rows) == Result(0, 0, ("min(i)",), ((1,),))


# Refusals: it stays what it was.


Spoil = Callable[[Replica, SnapshotHeld, list[bytes]], Restore]


def _one_is_lacking(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position, (*held.digests, digest_of(b"nobody has it")), b"")


def _another_position(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position + 1, held.digests, b"")


def _nothing(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position, (), b"")


def _one_too_few(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position, held.digests[:-1], b"")


def _one_twice(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position, (*held.digests, held.digests[-1]), b"")


def _without_a_header(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    return Restore(held.position, held.digests[1:], b"")


def _turned_round(_: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    first, second, *pages = held.digests
    return Restore(held.position, (first, second, *reversed(pages)), b"")


def _a_wrong_page(target: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    spoiled = target.stage(b"\x55" * len(chunks[-1]))
    return Restore(held.position, (*held.digests[:-1], spoiled), b"")


def _a_torn_page(target: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    spoiled = target.stage(chunks[-1][:-100])
    return Restore(held.position, (*held.digests[:-1], spoiled), b"")


def _a_list_of_nonsense(target: Replica, held: SnapshotHeld, chunks: list[bytes]) -> Restore:
    spoiled = target.stage(b"\xff" * len(chunks[1]))
    return Restore(held.position, (held.digests[0], spoiled, *held.digests[2:]), b"")


SPOILS = [
    _one_is_lacking, _another_position, _nothing, _one_too_few, _one_twice, _without_a_header, _turned_round,
    _a_wrong_page, _a_torn_page, _a_list_of_nonsense,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__.strip("_"))
def test_what_is_not_a_snapshot_is_refused_and_nothing_is_changed(tmp_path: Path, spoil: Spoil) -> None:
    with lived_in(tmp_path / "one") as one, lived_in(tmp_path / "other", rows=30) as other:
        before = other.digest()
        held = one.hold()
        other.fetch(one, held)
        chunks = [one.chunk(held, number) for number in range(len(held.digests))]
        assert other.why_refused(spoil(other, held, chunks))
        assert other.digest() == before
        other.execute("INSERT INTO notes (text) VALUES ('it goes on')")
        assert other.restore(held).position == held.position, "nothing of it is lost"
        assert other.digest() == one.digest()


def test_a_staged_chunk_that_is_not_what_its_name_says_is_lacking(tmp_path: Path) -> None:
    """After a loss of power a file may hold anything."""
    with lived_in(tmp_path / "one") as one, Replica(tmp_path / "other") as other:
        held = one.hold()
        other.fetch(one, held)
        staged = tmp_path / "other" / "snapshots" / "staged" / held.digests[3].hex()
        staged.write_bytes(staged.read_bytes()[:-1])
        assert "chunk 3" in other.why_refused(Restore(held.position, held.digests, b""))
        assert other.lacks(held) == (3,)
        other.stage(one.chunk(held, 3))
        other.restore(held)
        assert other.digest() == one.digest()


def test_while_another_program_reads_the_file_it_is_not_replaced(tmp_path: Path) -> None:
    """Its log would stay, and be laid over the new file. The node stops, and is the old one when it begins again."""
    with lived_in(tmp_path / "one") as one, lived_in(tmp_path / "other", rows=20) as other:
        before, held = other.digest(), one.hold()
        other.fetch(one, held)
        another = apsw.Connection(str(tmp_path / "other" / "greenline.db"))
        another.execute("BEGIN; SELECT * FROM notes").fetchall()
        answers: SimpleQueue[object] = SimpleQueue()
        for is_dirty in (False, True):
            other.database.ask(Query(question(ENDLESS), is_dirty), answers.put)
        broken = other.database.answer(Restore(held.position, held.digests, b""))
        assert isinstance(broken, Broken)
        assert "in use" in broken.reason
    another.close()
    with Replica(tmp_path / "other") as other:
        assert other.digest() == before


# Crashes.


def test_a_kill_at_any_step_of_a_restore_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    """The steps are the files that it opens, renames and removes. Afterwards the transfer goes on where it was."""
    with lived_in(tmp_path / "one", rows=100) as one, lived_in(tmp_path / "template", rows=20) as other:
        held, old, new = one.hold(), other.digest(), one.digest()
        other.fetch(one, held)
        chunks = {digest: one.chunk(held, number) for number, digest in enumerate(held.digests)}
    seen = []
    for step in count(1):
        directory = tmp_path / str(step)
        shutil.copytree(tmp_path / "template", directory)
        was_killed = _is_killed_in_a_restore(directory, held, step)
        with Replica(directory) as replica:
            opened, state = replica.ask(Opened, Open()), replica.digest()
            assert (state, opened.basis) in ((old, b""), (new, b"basis"))
            seen.append(state == new)
            for number in replica.lacks(held):
                replica.stage(chunks[held.digests[number]])
            assert replica.restore(held, b"basis").basis == b"basis"
            assert replica.digest() == new
        shutil.rmtree(directory)
        if not was_killed:
            break
    assert seen == sorted(seen), "once it is the new one it stays"
    assert seen.count(False) > 10
    assert seen.count(True) > 3


def _is_killed_in_a_restore(directory: Path, held: SnapshotHeld, step: int) -> bool:
    """It runs in another process, as hooks are for life. False: it came to its end."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed by itself"
        return os.WIFSIGNALED(status)
    try:
        killer = Killer(step)
        with Replica(directory) as replica:
            replica.lacks(held)
            killer.is_armed = True
            replica.restore(held, b"basis")
        os._exit(0)
    finally:
        os._exit(1)


class Killer:
    """Of its own process, at the n-th step after it is armed."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.is_armed = False
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, _: tuple[object, ...]) -> None:
        if self.is_armed and event in {"open", "os.rename", "os.remove"}:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def test_the_writer_goes_on_while_a_snapshot_is_taken(tmp_path: Path) -> None:
    with lived_in(tmp_path, rows=3000) as replica:
        answers: SimpleQueue[object] = SimpleQueue()
        replica.database.ask(SnapshotBegin(), answers.put)
        committed = 0
        while answers.empty():
            replica.execute("INSERT INTO notes (text) VALUES ('meanwhile')")
            committed += 1
        held = answers.get()
        assert isinstance(held, SnapshotHeld)
        assert committed > 1
        assert held.position < replica.database.position
