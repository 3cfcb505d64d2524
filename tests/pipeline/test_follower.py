"""A follower archives each position once, whatever happens to it, and what it rebuilds is what the replicas have."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from greenline.access import wire
from greenline.cli.local import Local
from greenline.database.sqlite import backups, tables
from greenline.kernel.actions import opened
from greenline.kernel.database import Expire
from greenline.pipeline import twin
from greenline.pipeline.archive import ACTIONS, BUNDLES, CHANGES, KINDS, Archive, Damaged, InUse
from greenline.pipeline.clerk import NotWritten
from greenline.pipeline.follower import DATABASE, Differs, Follower, Sizes, asks
from greenline.pipeline.reaching import reach
from greenline.pipeline.reading import BEGINNING, AnotherOrder, Discarded, NotRead, Replicas
from greenline.pipeline.twin import Twin
from greenline.replication.port import Where
from tests.node.databases import client, databases
from tests.pipeline.orders import Order, lively
from tests.pipeline.plain import asof

SMALL = Sizes(segment_actions=100, transaction_segments=3, transaction_bundles=150)


def table(archive: Archive, kind: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in archive.files(kind)])


def state(order: Order, position: int, directory: Path) -> tuple[bytes, list[dict[str, object]]]:
    """What a replica would have there: the digest, and the rows of `t`."""
    twin = Twin(directory)
    for bundle in order.bundles[:position]:
        twin.apply(bundle)
    twin.commit()
    digest = twin.digest()[1]
    rows = [dict(zip(each.columns, row[each.width :], strict=True)) for each in twin.rows() for row in each.rows]
    twin.close()
    return digest, rows


def stands(order: Order, position: int, digest: bytes) -> Callable[[], wire.Stands]:
    """A replica that says this of itself."""
    return lambda: wire.Stands(1, position, order.digests[position], digest, Where("p", True, 1, ("p",)))


def by_id(rows: object) -> list[dict[str, object]]:
    assert isinstance(rows, list | Iterator)
    return sorted(rows, key=lambda row: row["id"])


def test_every_position_is_archived_once_with_what_it_did(tmp_path: Path) -> None:
    order = lively(150)
    with Follower(Archive(tmp_path / "archive"), order, sizes=SMALL) as follower:
        assert follower.advance() == 150
    archive = Archive(tmp_path / "archive")
    assert (archive.first, archive.last, archive.base) == (1, 150, 0)

    assert table(archive, BUNDLES).column("position").to_pylist() == list(range(1, 151))
    assert table(archive, BUNDLES).column("digest").to_pylist() == order.digests[1:]
    actions = table(archive, ACTIONS)
    assert actions.num_rows == sum(len(opened(bundle.actions)) for bundle in order.bundles)
    assert actions.column("verdict").to_pylist().count("failed") == 15
    for position in (1, 46, 47, 100, 150):
        _, rows = state(order, position, tmp_path / f"at {position}")
        assert by_id(asof(archive, "t", position)) == by_id(rows)
        assert list(dict(archive.columns("t", position))) == list(rows[0] if rows else ("id", "a", "b"))


def test_a_follower_takes_no_more_than_it_is_asked_to_and_goes_on_where_it_was(tmp_path: Path) -> None:
    order = lively(60)
    with Follower(Archive(tmp_path / "archive"), order, sizes=SMALL) as follower:
        assert [follower.advance(10), follower.advance(13)] == [10, 23]
        assert follower.newest == 60
    with Follower(Archive(tmp_path / "archive"), order, sizes=SMALL) as follower:
        assert follower.position == 23
        assert follower.advance() == 60
        order.of("INSERT INTO t (a) VALUES ('more')")
        follower.run(until=61)
        assert follower.archive.last == 61
        assert follower.advance() == 61


FOLLOW = """
import sys
from pathlib import Path
from greenline.pipeline.archive import Archive
from greenline.pipeline.follower import Follower, Sizes
from tests.pipeline.orders import lively
order = lively(int(sys.argv[2]))
sizes = Sizes(segment_actions=100, transaction_segments=3, transaction_bundles=150)
with Follower(Archive(Path(sys.argv[1])), order, sizes=sizes) as follower:
    while follower.position < int(sys.argv[2]):
        print(follower.advance(40), flush=True)
"""


@pytest.mark.slow
def test_a_follower_that_is_killed_again_and_again_archives_what_one_does_that_is_not(tmp_path: Path) -> None:
    """Its own process and the one that writes for it; each time somewhere else."""
    many, chance = 400, random.Random(4)
    order = lively(many)
    with Follower(Archive(tmp_path / "whole"), order, sizes=SMALL) as follower:
        follower.advance()

    torn, kills = tmp_path / "torn", 0
    while kills < 4:
        command = [sys.executable, "-c", FOLLOW, str(torn), str(many)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(chance.randint(1, 3))]
        if all(told):
            kills += 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert not told[-1] or Archive(torn).last >= int(told[-1])
    with Follower(Archive(torn), order, sizes=SMALL) as follower:
        follower.advance()
    for kind in KINDS:
        assert table(Archive(torn), kind).equals(table(Archive(tmp_path / "whole"), kind)), kind
    Archive(torn).check()


def test_a_database_that_is_damaged_gone_or_old_is_made_anew_from_the_archive(tmp_path: Path) -> None:
    """The cluster need not have what the archive has."""
    order, directory = lively(90), tmp_path / "archive" / DATABASE
    with Follower(Archive(tmp_path / "archive"), order, sizes=SMALL) as follower:
        follower.advance(50)
    shutil.copytree(directory, tmp_path / "old")
    with Follower(Archive(tmp_path / "archive"), order, sizes=SMALL) as follower:
        follower.advance(30)
    order.low = 80
    digest, _ = state(order, 90, tmp_path / "expected")

    def damaged() -> None:
        (directory / tables.FILE).write_bytes(b"no database" * 1000)

    def gone() -> None:
        shutil.rmtree(directory)

    def old() -> None:
        shutil.rmtree(directory)
        shutil.copytree(tmp_path / "old", directory)

    for befall in (damaged, gone, old):
        befall()
        with Follower(Archive(tmp_path / "archive"), order, stands=stands(order, 90, digest), sizes=SMALL) as follower:
            assert follower.position in (80, 90)
            assert [follower.verify(), follower.verify()] == [90, 90]


def test_segments_that_are_gone_are_missed(tmp_path: Path) -> None:
    order, path = lively(90), tmp_path / "archive"
    with Follower(Archive(path), order, sizes=SMALL) as follower:
        follower.advance()
    *_, before, last = sorted((path / "segments").glob("*.json"))
    last.unlink()
    with pytest.raises(NotRead, match=r"stands at 90, .* ends at .*bring back its segments"):
        Follower(Archive(path), order)
    last.write_bytes(before.read_bytes())
    before.unlink()
    with pytest.raises(Damaged, match="has nothing between the positions"):
        Archive(path)


def test_another_cluster_s_order_is_refused(tmp_path: Path) -> None:
    order, path = lively(30), tmp_path / "archive"
    with Follower(Archive(path), order, sizes=SMALL) as follower:
        follower.advance()
    for length in (20, 30, 40):
        with (
            Follower(Archive(path), lively(length, salt=1)) as follower,
            pytest.raises(AnotherOrder, match="another cluster"),
        ):
            follower.advance()
    assert Archive(path).last == 30


def test_two_followers_do_not_write_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenline.pipeline.archive.LOCK_S", 0.1)
    with Follower(Archive(tmp_path / "archive"), lively(3)), pytest.raises(InUse, match="another follower"):
        Follower(Archive(tmp_path / "archive"), lively(3))


@pytest.mark.parametrize("at_once", [10, 60], ids=["by itself", "by its clerk"])
def test_a_segment_that_cannot_be_written_stops_the_follower_before_it_commits(at_once: int, tmp_path: Path) -> None:
    order, path = lively(60), tmp_path / "archive"
    with Follower(Archive(path), order, sizes=SMALL) as follower:
        follower.advance(20)
        shutil.rmtree(path / CHANGES)
        with pytest.raises(NotWritten, match=r"changes.* No such file or directory"):
            follower.advance(at_once)
        (path / CHANGES).mkdir()
        with pytest.raises(NotWritten, match="close it and begin another"):
            follower.advance(at_once)
    twin = Twin(path / DATABASE)
    assert twin.position == 20
    twin.close()


def test_the_log_of_its_database_is_brought_over_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, longest = Order(), 0
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    for number in range(100):
        order.series("INSERT INTO t (a) VALUES (?)", [(f"{number * 100 + each:>200}",) for each in range(100)])
    digest, _ = state(order, 101, tmp_path / "expected")
    monkeypatch.setattr(twin, "WAL_BYTES", 10_000)
    monkeypatch.setattr(twin, "WAL_MOST_BYTES", 300_000)
    path = tmp_path / "archive"
    with Follower(Archive(path), order, stands=stands(order, 101, digest), sizes=SMALL) as follower:
        while follower.advance(4) < 101:
            longest = max(longest, (path / DATABASE / f"{tables.FILE}-wal").stat().st_size)
        assert follower.verify() == 101
    assert 300_000 < longest < 1_000_000 < (path / DATABASE / tables.FILE).stat().st_size


# An order without its beginning.


def test_what_is_discarded_is_no_silent_gap(tmp_path: Path) -> None:
    order = lively(60)
    order.low = 10
    with Follower(Archive(tmp_path / "late"), order) as follower:
        with pytest.raises(Discarded, match=r"from its beginning .* `greenline backup`"):
            follower.advance()
        assert follower.archive.last == 0
    order.low = 0
    with Follower(Archive(tmp_path / "slow"), order) as follower:
        follower.advance(20)
        order.low = 25
        with pytest.raises(Discarded, match=r"a gap after position 20, .* `greenline backup`"):
            follower.advance()
        assert follower.archive.last == 20


def test_a_backup_is_a_base_and_the_changes_begin_with_what_is_in_it(tmp_path: Path) -> None:
    order, base = lively(100), tmp_path / "base.db"
    _, rows = state(order, 40, tmp_path / "replica")
    assert backups.take(tmp_path / "replica", base) == 40
    order.low = 35
    digest, at_the_end = state(order, 100, tmp_path / "expected")

    with Follower(
        Archive(tmp_path / "archive"), order, base=base, stands=stands(order, 100, digest), sizes=SMALL
    ) as follower:
        assert follower.advance() == 100
    archive = Archive(tmp_path / "archive")
    assert (archive.base, archive.first, archive.last) == (40, 41, 100)
    assert table(archive, BUNDLES).column("position").to_pylist() == list(range(41, 101))
    assert by_id(asof(archive, "t", 40)) == by_id(rows)
    assert by_id(asof(archive, "t", 100)) == by_id(at_the_end)
    with pytest.raises(Discarded, match="after the positions 40 to 100, not after 39"):
        next(asof(archive, "t", 39))

    shutil.rmtree(archive.path / DATABASE)
    with Follower(archive, order, stands=stands(order, 100, digest)) as follower:
        assert follower.verify() == 100
    with pytest.raises(NotRead, match="has begun already"):
        Follower(archive, order, base=base)


def test_a_base_that_the_order_does_not_reach_back_to_is_too_old(tmp_path: Path) -> None:
    order, base = lively(100), tmp_path / "base.db"
    state(order, 40, tmp_path / "replica")
    backups.take(tmp_path / "replica", base)
    order.low = 45
    with pytest.raises(NotRead, match=r"the state at position 40, .* too old; take a new one"):
        Follower(Archive(tmp_path / "archive"), order, base=base)


def test_a_cluster_that_began_with_a_backup_is_not_followed_from_nothing(tmp_path: Path) -> None:
    before, order = lively(20), Order()
    state(before, 20, tmp_path / "before")
    backups.take(tmp_path / "before", tmp_path / "backup.db")
    backups.begin_anew(tmp_path / "backup.db", tmp_path / "replica")
    backups.take(tmp_path / "replica", tmp_path / "base.db")
    for number in range(10):
        order.of(f"UPDATE t SET a = 'again' WHERE id = {number}")
    digest, rows = state(order, 10, tmp_path / "replica")

    unlike = Follower(Archive(tmp_path / "archive"), order, stands=stands(order, 10, digest))
    with unlike, pytest.raises(Differs, match="the cluster began with a backup"):
        unlike.advance()
    with Follower(
        Archive(tmp_path / "based"), order, stands=stands(order, 10, digest), base=tmp_path / "base.db"
    ) as follower:
        assert follower.advance() == 10
        assert by_id(asof(follower.archive, "t", 10)) == by_id(rows)


def test_a_state_that_is_not_the_replicas_is_told_loudly(tmp_path: Path) -> None:
    order = lively(50)
    with Follower(Archive(tmp_path / "archive"), order, stands=stands(order, 30, b"other")) as follower:
        with pytest.raises(Differs, match="the state at position 30 comes to"):
            follower.advance()
        with pytest.raises(Differs, match="the state at position 30 comes to"):
            follower.advance()


# A real cluster.


@pytest.mark.slow
def test_a_real_cluster_is_followed_to_the_state_of_its_replicas(tmp_path: Path) -> None:
    """With users, sessions that end, and whatever else is ordered beside SQL; from both nodes, one after the other."""

    async def first(local: Local) -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
            await db.executemany("INSERT INTO t (a) VALUES (?)", [(number,) for number in range(500)])
            await db.admin.create_user("ann", "secret", "read")
            await db.admin.expire(db.seen)

    async def then(local: Local) -> None:
        async with client(local) as db:
            await db.executemany("UPDATE t SET a = a + 1 WHERE id % 50 = ?", [(number,) for number in range(50)])

    with databases(tmp_path / "cluster", "p q") as local:
        asyncio.run(first(local))
        reached = reach({"at": str(local.place)})
        with Follower(Archive(tmp_path / "archive"), Replicas(reached), stands=asks(reached)) as follower:
            follower.verify()
            asyncio.run(then(local))
            at = follower.verify()
            assert at == follower.archive.last
            assert sum(row["a"] for row in asof(follower.archive, "t", at)) == sum(range(1, 501))
            systems = [bundle.system for piece in follower.archive.pieces(BEGINNING, at) for bundle in piece.bundles]
            assert any(isinstance(each, Expire) for system in systems for each in system), "sessions were to end"


def test_what_passwords_are_checked_against_is_for_the_owner_alone(tmp_path: Path) -> None:
    with Follower(Archive(tmp_path / "archive"), lively(3)) as follower:
        follower.advance()
    assert (tmp_path / "archive").stat().st_mode & 0o777 == 0o700


def test_a_segment_is_bounded_by_what_was_changed(tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    order.series("INSERT INTO t (n) VALUES (?)", [(number,) for number in range(100)])
    for _ in range(20):
        order.of("UPDATE t SET n = n + 1")
    archive = Archive(tmp_path)
    with Follower(archive, order, sizes=Sizes(segment_changes=60_000)) as follower:
        follower.advance()
    changed = [manifest.files[CHANGES].rows for manifest in archive.manifests()]
    assert sum(changed) == 100 + 20 * 200
    assert max(changed) <= 700


def test_what_an_action_returns_is_kept_unless_it_is_long(tmp_path: Path) -> None:
    """A bundle has thousands of actions, and each may return megabytes: that would be more than anybody holds."""
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    order.of("INSERT INTO t VALUES (1, hex(zeroblob(500000)))")
    order.of(*["UPDATE t SET a = a RETURNING id"] * 3, *["UPDATE t SET a = a RETURNING a"] * 400)
    with Follower(Archive(tmp_path), order) as follower:
        assert follower.advance() == 3
    actions = table(Archive(tmp_path), ACTIONS).filter(pc.field("position") == 3)
    assert set(actions.column("verdict").to_pylist()) == {"done"}
    outcomes = actions.column("outcome").to_pylist()
    assert json.loads(outcomes[0])[0]["rows"] == [[1]]
    assert outcomes[3:] == [None] * 400


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may be longer: to whoever writes, that is a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_is_said_and_the_next_one_goes_on(
    tmp_path: Path, little_room: None, request: pytest.FixtureRequest
) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    for _ in range(20):
        order.of("INSERT INTO t (a) VALUES (randomblob(40000))")
    follower = Follower(Archive(tmp_path), order)
    with pytest.raises(NotWritten, match=r"has failed|could not be written"):
        follower.advance()
    follower.close()
    if Archive(tmp_path).last:
        with pytest.raises(NotWritten, match=r"has failed|could not be written"):
            Follower(Archive(tmp_path), order)

    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with Follower(Archive(tmp_path), order, patience_s=0.0) as follower:
        assert follower.advance() == 21
