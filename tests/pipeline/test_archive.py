"""The archive is whole or says what is missing, and its positions are there once, in few files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from greenline.pipeline import glance, segments
from greenline.pipeline.archive import BUNDLES, KINDS, SEGMENTS, Archive, Damaged, Manifest, name_of
from greenline.pipeline.follower import Follower
from greenline.pipeline.reading import BEGINNING, AnotherOrder, Discarded, Place
from tests.pipeline.orders import Order

WIDER = 9
"""Here there is another table."""


def archived(path: Path, positions: int, *, together: int = 5) -> Order:
    """An archive of so many positions, some to a segment, and whose it is."""
    order = Order()
    order.of("CREATE TABLE t (a)")
    for number in range(2, positions + 1):
        order.of("CREATE TABLE u (b TEXT)" if number == WIDER else f"INSERT INTO t VALUES ({number})")
    with Follower(Archive(path), order) as follower:
        while follower.position < positions:
            follower.advance(together)
    return order


def positions(archive: Archive, kind: str = BUNDLES) -> list[int]:
    column = "_commit_version" if kind == "changes" else "position"
    found: list[int] = pa.concat_tables(pq.read_table(each) for each in archive.files(kind)).column(column).to_pylist()
    return found


def test_an_archive_is_an_order_that_can_be_read_from_anywhere(tmp_path: Path) -> None:
    order = archived(tmp_path, 23)
    archive = Archive(tmp_path)
    assert archive.newest() == order.newest()
    assert archive.places([0, 3, 5, 23]) == order.places([0, 3, 5, 23])
    for first, last in ((0, 23), (3, 12), (5, 10), (22, 23), (7, 7)):
        pieces = list(archive.pieces(Place(first, order.digests[first]), last))
        assert [bundle for piece in pieces for bundle in piece.bundles] == order.bundles[first:last]
        assert [digest for piece in pieces for digest in piece.digests] == order.digests[first + 1 : last + 1]
    with pytest.raises(AnotherOrder):
        list(archive.pieces(Place(3, b"another"), 12))
    with pytest.raises(Discarded, match="has the positions 1 to 23, not 24 to 30"):
        list(archive.pieces(Place(23), 30))
    assert archive.cluster == order.digests[1].hex()


def test_files_are_those_of_the_range(tmp_path: Path) -> None:
    archived(tmp_path, 20)
    archive = Archive(tmp_path)
    assert [path.stem for path in archive.files(BUNDLES, 6, 11)] == [f"{6:020}-{10:020}", f"{11:020}-{15:020}"]
    assert len(archive.files(BUNDLES)) == 4
    assert archive.files(BUNDLES, 21) == []


def test_many_small_segments_become_one_and_nothing_else_changes(tmp_path: Path) -> None:
    order = archived(tmp_path, 40, together=1)
    archive = Archive(tmp_path)
    assert len(archive.manifests()) == 2 + 40 - 2 * segments.MERGED
    assert len(list((tmp_path / SEGMENTS).iterdir())) == len(archive.manifests())
    assert positions(archive) == list(range(1, 41))
    assert positions(archive, "changes") == [each for each in range(2, 41) if each != WIDER]
    assert archive.tables(0) == {}
    assert archive.columns("t", 1) == archive.columns("t", 40) == [("a", "")]
    assert [archive.columns("u", position) for position in (WIDER - 1, WIDER, 40)] == [
        [],
        [("b", "TEXT")],
        [("b", "TEXT")],
    ]
    assert archive.places(range(41)) == order.places(range(41))
    archive.check()


def test_files_that_became_one_with_others_stay_for_a_while_for_those_who_read_them(tmp_path: Path) -> None:
    """A job of Spark's, perhaps in another process, has their names since it was planned."""
    order = archived(tmp_path, 12)
    archive = Archive(tmp_path)
    listed, parts = archive.files(BUNDLES), archive.manifests()
    for path in listed:
        os.utime(path, (0, 0))  # they were written long ago: that is not what counts
    segments.merge(tmp_path, parts)
    assert [manifest.name for manifest in Archive(tmp_path).manifests()] == [name_of(1, 12)]
    with Follower(Archive(tmp_path), order):
        assert all(path.exists() for path in listed)

    for path in listed:
        os.utime(path, (time.time() - segments.GRACE_S,) * 2)
    with Follower(Archive(tmp_path), order):
        assert not any(path.exists() for path in listed)
    assert positions(Archive(tmp_path)) == list(range(1, 13))


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_a_merge_that_was_broken_off_leaves_each_position_once(
    removed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed when it has removed some of the small ones."""
    order = archived(tmp_path, 20)
    archive = Archive(tmp_path)
    parts, left = archive.manifests(), [removed]
    discard = segments.discard

    class Killed(Exception):
        pass

    def discard_some(path: Path, name: str) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        discard(path, name)

    monkeypatch.setattr(segments, "discard", discard_some)
    with pytest.raises(Killed):
        segments.merge(tmp_path, parts)
    monkeypatch.undo()
    assert positions(archive) == list(range(1, 21)), "whoever has listed it before finds it"
    assert positions(Archive(tmp_path)) == list(range(1, 21))
    with Follower(Archive(tmp_path), order) as follower:
        assert follower.advance() == 20
    assert len(list((tmp_path / SEGMENTS).iterdir())) == 1
    segments.remove_unused(tmp_path, {name_of(1, 20)}, grace=0.0)
    assert len(list((tmp_path / BUNDLES).iterdir())) == 1
    archive.refresh()
    archive.check()


def test_what_a_killed_follower_left_unfinished_is_removed(tmp_path: Path) -> None:
    order = archived(tmp_path, 10)
    (tmp_path / BUNDLES / f"{11:020}-{12:020}.parquet").write_bytes(b"half")
    (tmp_path / SEGMENTS / f"{11:020}-{12:020}.json.part").write_bytes(b"half")
    os.utime(tmp_path / BUNDLES / f"{11:020}-{12:020}.parquet", (0, 0))
    assert Archive(tmp_path).last == 10
    with Follower(Archive(tmp_path), order):
        assert {len(list((tmp_path / kind).iterdir())) for kind in (SEGMENTS, *KINDS)} == {2}


def test_a_file_that_is_cut_changed_or_gone_is_told(tmp_path: Path) -> None:
    archived(tmp_path, 10)
    (path, _) = Archive(tmp_path).files("changes")
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(Damaged, match=rf"has {len(data) - 1} bytes and had {len(data)}: bring it back"):
        Archive(tmp_path).files("changes")
    path.write_bytes(data[:-9] + b"?" + data[-8:])
    Archive(tmp_path).files("changes")
    with pytest.raises(Damaged, match="is not what was written"):
        Archive(tmp_path).check()
    path.unlink()
    with pytest.raises(Damaged, match="No such file"):
        Archive(tmp_path).files("changes")


def test_an_archive_of_another_version_is_not_read(tmp_path: Path) -> None:
    archived(tmp_path, 3)
    (path,) = (tmp_path / SEGMENTS).iterdir()
    other = msgspec.structs.replace(msgspec.json.decode(path.read_bytes(), type=Manifest), version=7)
    path.write_bytes(msgspec.json.encode(other))
    with pytest.raises(Damaged, match="has the form 7, we know 2: use the Greenline that made it"):
        Archive(tmp_path).files(BUNDLES)
    path.write_bytes(b"{")
    with pytest.raises(Damaged, match="cannot be read"):
        list(Archive(tmp_path).pieces(BEGINNING, 3))


def test_segments_become_one_in_groups_that_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "GROUP_BYTES", 20_000)
    order = Order()
    order.of("CREATE TABLE t (a)", "CREATE TABLE u (a)")
    for number in range(40):
        order.of(f"INSERT INTO {'t' if number < 8 else 'u'} VALUES (hex(zeroblob(2000)))")
    with Follower(Archive(tmp_path), order) as follower:
        while follower.position < 41:
            follower.advance(1)
    archive = Archive(tmp_path)
    (path, *_) = archive.files("changes")
    groups = pq.read_metadata(path)
    assert groups.num_rows >= 15
    assert groups.num_row_groups >= 3
    assert positions(archive, "changes") == list(range(2, 42))
    archive.check()
    files = {kind: archive.files(kind) for kind in KINDS}
    assert glance.is_expected(files, 1, 41)
    assert glance.kinds(files["changes"], 1, 41) == {"t": {"insert"}, "u": {"insert"}}
