"""A disk that fails is nobody's outcome: nothing is answered but that it is broken, and what was committed is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import apsw
import pytest

from greenline.database.sqlite import tables
from greenline.database.sqlite.broken import Broken, Unusable, is_mistake
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import pack
from greenline.kernel.database import Answer, Apply, Commit, DigestOf, Open
from greenline.kernel.statements import Statement
from tests.database.sqlite.asking import Database

_names = count(1)


class Faulty(apsw.VFS):
    """A file system that can be told to refuse writes to the log."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.error = 0
        self.after = 0
        """Writes that are still done."""
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: Faulty, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        disk = self._disk
        if disk.error:
            if disk.after == 0:
                raise apsw.exception_for(disk.error)
            disk.after -= 1
        super().xWrite(data, offset)


@pytest.fixture
def disk() -> Iterator[Faulty]:
    disk = Faulty()
    yield disk
    disk.unregister()


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("error", [apsw.SQLITE_FULL, apsw.SQLITE_IOERR])
def test_a_commit_that_cannot_be_written_breaks_it(tmp_path: Path, disk: Faulty, error: int, after: int) -> None:
    with Database(tmp_path, base=disk.name) as database:
        database.done("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
        database.apply(database.next("INSERT INTO t VALUES (zeroblob(9000))"))
        disk.error, disk.after = error, after

        broken = database.sqlite.answer(Commit(2))

        assert isinstance(broken, Broken), broken
        assert "the database has failed" in broken.reason
        for request in (Open(), Commit(2), Apply(3, ()), DigestOf()):
            assert database.sqlite.answer(request) == broken

    with Database(tmp_path) as database:
        assert database.opened().position == 1
        assert database.rows("SELECT a FROM t") == [(1,)]


def test_a_disk_that_is_full_in_the_middle_of_an_action_is_no_outcome_of_it(tmp_path: Path, disk: Faulty) -> None:
    """A cache that is too small for the transaction is written to the log before the commit."""
    small = Limits(transaction_seconds=3600, cache_bytes=64 * 1024)
    with Database(tmp_path, small, disk.name) as database:
        database.done("CREATE TABLE t (a)")
        disk.error = apsw.SQLITE_FULL
        large = database.next(Statement("INSERT INTO t VALUES (zeroblob(4000000))"))

        answer = database.sqlite.answer(Apply(2, (pack((large,)),)))

        assert isinstance(answer, Broken), answer


def test_whoever_waits_when_it_breaks_is_told(tmp_path: Path, disk: Faulty) -> None:
    answers: SimpleQueue[Answer | Broken] = SimpleQueue()
    with Database(tmp_path, base=disk.name) as database:
        database.apply(database.next("CREATE TABLE t (a)"))
        database.apply()
        database.sqlite.ask(Commit(1), answers.put)
        database.sqlite.ask(DigestOf(), answers.put)
        disk.error = apsw.SQLITE_IOERR
        database.sqlite.ask(Commit(2), answers.put)

        assert [type(answers.get(timeout=10)) for _ in range(3)] == [Broken] * 3


def test_damage_that_is_met_while_it_runs_breaks_it(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)", *["INSERT INTO t VALUES (zeroblob(3000))"] * 50)
    file = tmp_path / tables.FILE
    whole = file.read_bytes()
    file.write_bytes(whole[: 12 * 4096] + b"\xff" * (len(whole) - 12 * 4096))

    with Database(tmp_path) as database:
        answer = database.sqlite.answer(Apply(2, (pack((database.next("UPDATE t SET a = 1"),)),)))

        assert isinstance(answer, Broken), answer
        assert "malformed" in answer.reason


def test_a_disk_that_takes_nothing_is_said_when_it_is_opened(tmp_path: Path, disk: Faulty) -> None:
    disk.error = apsw.SQLITE_FULL

    with pytest.raises(Unusable, match="room on the disk"):
        Database(tmp_path, base=disk.name)


@pytest.mark.parametrize(
    ("error", "is_ours"),
    [
        (apsw.FullError("the disk is full"), False),
        (OSError("no such device"), False),
        (Unusable("it is damaged"), False),
        (apsw.ConstraintError("our own statement"), True),
        (KeyError("a mistake"), True),
    ],
)
def test_only_what_a_disk_did_is_worth_another_try(error: Exception, is_ours: bool) -> None:
    assert is_mistake(error) == is_ours
