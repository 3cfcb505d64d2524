"""Disks that are not what their server left: cut off, with a bit turned, of somebody else, or of last week.

A replica that cannot be sure of its past stops and says what to do; the others go on. What must never be is a replica
that goes on with another order. First with simulated disks, in a cluster; then the bytes themselves, in real files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from greenline.database.memory import MemorySqlite
from greenline.kernel.codec import Codec, CodecError, Log, seal, unseal
from greenline.kernel.evidence import HALT
from greenline.kernel.identities import ProcId
from greenline.kernel.recovery import recover as read_log
from greenline.node.log import LogDamaged
from greenline.replication import invariants
from greenline.replication.messages import Record
from greenline.replication.recovery import LogRefused, recover
from greenline.replication.settings import Settings
from greenline.ring.messages import Ceiling
from greenline.simulation.cluster import Cluster, broken_rules
from greenline.simulation.desk import Desk
from greenline.simulation.disk import Disk
from greenline.simulation.subjects import engine_with
from greenline.spec.judge import Broken
from tests.node.test_log import contents as read_files
from tests.node.test_log import kept as write_files
from tests.node.test_log import segments

SEED = 31
SETTINGS = Settings(servers=("p", "q", "r"))
CODECS: dict[int, Codec[Any]] = {1: Codec(1, Ceiling), 2: Codec(2, Record)}
STOPPED = {"run/2_everybody_is_up", "replication/12_convergence"}
"""What cannot hold of a cluster in which somebody has stopped for good."""
LOST = {
    "replication/08_1_recovery_keeps_the_order",
    "replication/08_2_recovery_keeps_own_bundles",
    "replication/10_log_before_data",
}
"""What a disk that forgets breaks by itself, whatever we do."""


def replicas(salt: str = "", seed: int = SEED, **settings: Any) -> Cluster:
    return Cluster("p q r", seed, replace(engine_with(salt=salt, **settings), quiet_for=2.0)).settle()


def busy(cluster: Cluster, rounds: int = 2, first: int = 0) -> Cluster:
    """Everybody orders something, again and again."""
    for number in range(rounds):
        for place, name in enumerate(cluster.names):
            cluster[name].submit(f"append l1 {first + 3 * number + place}")
        cluster.settle()
    return cluster


def frames(data: bytes) -> Iterator[bytes]:
    """One by one; at the end what is none, if something is left."""
    at = 0
    while at < len(data):
        try:
            end = unseal(data, at).end
        except CodecError:
            end = len(data)
        yield data[at:end]
        at = end


@dataclass
class Image:
    """What a machine has: its log, and its database."""

    log: bytes
    database: MemorySqlite

    @staticmethod
    def of(cluster: Cluster, name: ProcId) -> Image:
        return Image(cluster.world[name].disk.contents(), _places(cluster)[name].database)


def _places(cluster: Cluster) -> dict[ProcId, Any]:
    desk = cluster.world["p"].app
    assert isinstance(desk, Desk)
    return desk.load.databases.places


def put_back(cluster: Cluster, name: ProcId, log: bytes | None = None, database: MemorySqlite | None = None) -> None:
    """On the disk of one that is down."""
    process = cluster.world[name]
    if log is not None:
        process.disk = Disk(cluster.world.agenda, Random(0))
        for frame in frames(log):
            process.disk.write(frame)
        process.disk.crash(keep=1.0, tear=False)
    if database is not None:
        _places(cluster)[name].database = database


def halts(cluster: Cluster, name: ProcId) -> list[str]:
    return [row.detail or "" for row in cluster.rows if row.kind == HALT and row.process == name]


def others_go_on(cluster: Cluster, stopped: ProcId = "r") -> None:
    """They are a primary component, and order."""
    alive = [name for name in cluster.names if name != stopped]
    before = cluster[alive[0]].position
    for number, name in enumerate(alive):
        cluster[name].submit(f"append l3 {1000 + number}")
    cluster.settle()
    assert not cluster.world[stopped].is_up
    assert {cluster[name].state for name in alive} == {"RegPrim"}
    assert {cluster[name].position for name in alive} == {before + len(alive)}
    assert len({cluster[name].database for name in alive}) == 1


def broken(clusters: list[Cluster]) -> list[Broken]:
    """By anything but the damage itself."""
    found = broken_rules(clusters[0].subject.rules, clusters)
    return [each for each in found if each.rule not in STOPPED | LOST]


# Cut off.


def with_a_history() -> Cluster:
    """Greens, a red that was made alone, two components, and a merge."""
    cluster = busy(replicas()).partition("p q | r").settle()
    cluster["r"].submit("append l2 1")
    return cluster.settle().heal().settle()


@cache
def log_of_r() -> bytes:
    return with_a_history().world["r"].disk.contents()


def test_a_log_that_ends_at_any_byte_is_a_replica_as_it_was_when_it_ended_there() -> None:
    """What is torn is cut off; what is whole is a prefix of the records, so a state that could have been."""
    log = log_of_r()
    whole = read_log(log, CODECS).pasts[2].records
    was = 0
    for end in range(len(log) + 1):
        found = read_log(log[:end], CODECS)
        records = found.pasts[2].records
        assert found.is_torn == (end not in (found.end, 0))
        assert records == whole[: len(records)]
        if len(records) > was:
            was = len(records)
            invariants.check_queue(recover("r", SETTINGS, tuple(records)))
    assert was == len(whole) > 20


def ends_of_records(log: bytes, last: int) -> list[int]:
    ends = [0]
    for frame in frames(log):
        ends.append(ends[-1] + len(frame))
    return ends[-last - 1 : -1]


@pytest.mark.slow
def test_a_server_whose_log_lost_its_end_is_as_it_was_in_the_end_or_stops() -> None:
    """It has lost what it had forced, and perhaps promised. Where somebody relies on that, it is not let in."""
    log, played, outcomes = log_of_r(), list[Cluster](), set[str]()
    ends = ends_of_records(log, last=10)
    for end in (*ends, ends[-2] + 7, ends[-1] + 7):
        cluster = with_a_history().crash("r", keep=1.0)
        assert cluster.world["r"].disk.contents() == log
        put_back(cluster, "r", log[:end])
        cluster.restart("r").settle()
        if cluster.world["r"].is_up:
            outcomes.add("goes on")
            busy(cluster, rounds=1, first=100)
            assert len({cluster[name].database for name in "pqr"}) == 1
        else:
            outcomes.add("stops")
            (halt,) = halts(cluster, "r")
            assert "its disk is older than it is" in halt or "its log ends at" in halt, halt
            assert "empty directory" in halt
            others_go_on(cluster)
        played.append(cluster)
    assert outcomes == {"goes on", "stops"}
    assert broken(played) == []


# A bit is turned.


def turned(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_turned_bit_is_never_read_as_something_else() -> None:
    """In the last record it looks like what a crash leaves; before it, it is damage, and nobody goes on over it."""
    log, chance = log_of_r(), Random(1)
    whole = read_log(log, CODECS).pasts[2].records
    last = len(log) - len(list(frames(log))[-1])
    for at in range(len(log)):
        damaged = turned(log, at, chance.randrange(8))
        if at < last:
            with pytest.raises(CodecError, match=r"damaged at byte|version"):
                read_log(damaged, CODECS)
        else:
            found = read_log(damaged, CODECS)
            assert found.is_torn
            assert found.end == last
            assert whole[: len(found.pasts[2].records)] == found.pasts[2].records


def test_records_that_are_whole_and_do_not_belong_together_are_refused() -> None:
    """A record taken out, doubled or moved: each has its checksum, and the replica that they tell of cannot be."""
    log = log_of_r()
    pieces = list(frames(log))
    refusals = 0
    for place in range(len(pieces)):
        without = b"".join((*pieces[:place], *pieces[place + 1 :]))
        twice = b"".join((*pieces[: place + 1], *pieces[place:]))
        for changed in (without, twice):
            why = refusal_of(changed)
            refusals += bool(why)
            assert not why or "empty directory" in why or "its beginning is lost" in why
    assert refusals > 20


def refusal_of(log: bytes) -> str:
    """Why no replica can be made of it; empty if one can, which is sound then."""
    try:
        replica = recover("r", SETTINGS, tuple(read_log(log, CODECS).pasts[2].records))
    except (LogRefused, CodecError) as error:
        return str(error)
    invariants.check_queue(replica)
    return ""


# Of somebody else.


def test_a_log_of_another_cluster_is_refused() -> None:
    other = busy(replicas(salt="other"))
    cluster = busy(replicas()).crash("r")
    put_back(cluster, "r", **vars(Image.of(other, "r")))
    cluster.restart("r").settle()
    (halt,) = halts(cluster, "r")
    assert "this log is of another cluster: other servers, weights or salt" in halt
    assert "start it with the configuration that it was made with, or give this node an empty directory" in halt
    others_go_on(cluster)


def test_a_machine_of_another_cluster_with_the_same_names_and_no_salt_is_not_let_in() -> None:
    """Somebody has made the cluster anew, and kept one old machine."""
    other = replicas(seed=SEED + 1)
    for number in range(4):
        other["r"].submit(f"append l1 {number}")
        other.settle()
    cluster = busy(replicas()).crash("r")
    put_back(cluster, "r", **vars(Image.of(other, "r")))
    cluster.restart("r").settle()
    assert "its disk is older than it is" in halts(cluster, "r")[-1]
    others_go_on(cluster)


def test_a_log_of_another_server_of_the_cluster_is_refused() -> None:
    """Two disks were exchanged, or a machine was cloned. r has accepted what q never heard of; q's log would make it
    forget that, and use the number again for something else."""
    cluster = busy(replicas()).partition("p q | r").settle()
    cluster["r"].submit("append l2 77")
    cluster.settle().crash("r", keep=1.0)
    put_back(cluster, "r", cluster.world["q"].disk.contents())
    cluster.restart("r").settle()
    assert halts(cluster, "r")


# Of last week.


def it_made_bundles(cluster: Cluster) -> None:
    busy(cluster, first=100)


def others_made_bundles(cluster: Cluster) -> None:
    for number in range(6):
        cluster["pq"[number % 2]].submit(f"append l2 {number}")
        cluster.settle()


def it_agreed_to_a_component(cluster: Cluster) -> None:
    cluster.partition("p q | r").settle().heal().settle()


MEANWHILE: dict[Callable[[Cluster], None], str] = {
    it_made_bundles: "has its bundle r#4, but it knows only 2 of its own",
    others_made_bundles: "was told that it has the order up to 12 on disk, but it has 6",
    it_agreed_to_a_component: "saw it agree to attempt",
}


def test_a_machine_that_is_restored_from_a_backup_is_not_let_in_and_the_others_go_on() -> None:
    played = []
    for meanwhile, because in MEANWHILE.items():
        cluster = busy(replicas())
        backup = cluster.world["r"].disk.contents()
        meanwhile(cluster)
        cluster.crash("r", keep=1.0)
        put_back(cluster, "r", backup, MemorySqlite())  # older than its log, which is in order
        cluster.restart("r").settle()
        (halt,) = halts(cluster, "r")
        assert "its disk is older than it is" in halt
        assert because in halt
        remedy = "It was restored from a backup; give this node an empty directory and a new name, and let it join anew"
        assert halt.endswith(remedy)
        others_go_on(cluster)
        played.append(cluster)
    assert broken(played) == []


def test_a_machine_with_an_empty_disk_and_an_old_name_is_not_let_in() -> None:
    cluster = busy(replicas()).crash("r")
    put_back(cluster, "r", b"", MemorySqlite())
    cluster.restart("r").settle()
    (halt,) = halts(cluster, "r")
    assert "its disk is older than it is" in halt
    others_go_on(cluster)


# One without the other.


def test_a_database_without_its_log_is_refused() -> None:
    cluster = busy(replicas()).crash("r", keep=1.0)
    put_back(cluster, "r", b"")
    cluster.restart("r").settle()
    (halt,) = halts(cluster, "r")
    assert "the database stands at position 6, its log ends at 0" in halt
    assert "give this node an empty directory and a new name" in halt
    others_go_on(cluster)


def test_a_database_that_is_newer_than_its_log_is_refused() -> None:
    cluster = busy(replicas())
    backup = cluster.world["r"].disk.contents()
    busy(cluster, first=100).crash("r", keep=1.0)
    put_back(cluster, "r", backup)
    cluster.restart("r").settle()
    (halt,) = halts(cluster, "r")
    assert "the database stands at position 12, its log ends at 6" in halt
    others_go_on(cluster)


def test_a_log_without_its_database_is_refused_if_it_has_discarded_what_the_database_lacks() -> None:
    cluster = busy(replicas(retain_after_white=1, checkpoint_bytes=1), rounds=4).crash("r", keep=1.0)
    put_back(cluster, "r", database=MemorySqlite())
    cluster.restart("r").settle()
    (halt,) = halts(cluster, "r")
    assert "the database stands at position 0, its log begins after" in halt
    assert "give this node an empty directory and a new name" in halt
    others_go_on(cluster)


def test_a_log_without_its_database_that_has_everything_makes_the_database_anew() -> None:
    cluster = busy(replicas()).crash("r", keep=1.0)
    put_back(cluster, "r", database=MemorySqlite())
    cluster.restart("r").settle()
    assert halts(cluster, "r") == []
    assert len({cluster[name].database for name in "pqr"}) == 1
    assert {cluster[name].position for name in "pqr"} == {6}


# The bytes, in real files: what was forced together is one batch.


@cache
def batches_of_r() -> tuple[tuple[bytes, ...], ...]:
    """What r forced together, in a run."""
    cluster = replicas()
    found: list[list[bytes]] = [list(frames(cluster.world["r"].disk.contents()))]
    disk = cluster.world["r"].disk
    write, force = disk.write, disk.force
    pending: list[bytes] = []

    def writing(frame: bytes) -> None:
        pending.append(frame)
        write(frame)

    def forcing(done: Callable[[], None], failed: Callable[[], None]) -> None:
        found.append(pending.copy())
        pending.clear()
        force(done, failed)

    disk.write, disk.force = writing, forcing  # type: ignore[method-assign]
    busy(cluster)
    return tuple(tuple(each) for each in found if each)


def in_files(place: Path) -> tuple[Path, list[bytes]]:
    """The log of r in a segment of its own size: its path, and the batches."""
    batches = batches_of_r()
    write_files(place, *map(list, batches), segment_bytes=1 << 14)
    (segment,) = segments(place)
    return segment, [b"".join(each) for each in batches]


def test_a_file_that_ends_at_any_byte_of_its_last_batch_is_the_log_without_it(tmp_path: Path) -> None:
    """Cut off, or never written: a file has its space before it has its bytes."""
    segment, batches = in_files(tmp_path)
    data = segment.read_bytes()
    end = data.index(batches[-1]) + len(batches[-1])
    begin = data.index(batches[-2]) + len(batches[-2])
    assert len(batches) > 4
    for at in range(begin, end):
        for left in (data[:at], data[:at] + bytes(len(data) - at)):
            if left == data:
                continue
            segment.write_bytes(left)
            found = read_files(tmp_path)
            assert found == b"".join(batches[:-1])
    records = read_log(b"".join(batches[:-1]), CODECS).pasts[2].records
    invariants.check_queue(recover("r", SETTINGS, tuple(records)))


def test_a_turned_bit_in_a_file_is_damage_unless_it_is_in_the_last_batch(tmp_path: Path) -> None:
    segment, batches = in_files(tmp_path)
    data, chance = segment.read_bytes(), Random(2)
    begin = data.index(batches[-2]) + len(batches[-2])
    end = data.index(batches[-1]) + len(batches[-1])
    for at in sorted(chance.sample(range(begin), 400)):
        segment.write_bytes(turned(data, at, chance.randrange(8)))
        with pytest.raises(LogDamaged, match=r"goes on after it|does not begin like a segment|segment of another log"):
            read_files(tmp_path)
    for at in sorted(chance.sample(range(begin, end), 60)):
        segment.write_bytes(turned(data, at, chance.randrange(8)))
        assert read_files(tmp_path) == b"".join(batches[:-1])
    segment.write_bytes(turned(data, end + 100, 3))
    assert read_files(tmp_path) == b"".join(batches), "nothing has been written there"


def test_a_log_with_records_of_a_core_that_is_not_here_is_refused() -> None:
    with pytest.raises(CodecError, match="records of channel 9, which no core of this node reads"):
        read_log(seal(9, b"\x80"), CODECS)
    assert list(Log(b"")) == []
