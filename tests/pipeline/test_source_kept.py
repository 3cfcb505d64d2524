"""Changes from an archive, for streams that were away meanwhile: nothing between is passed over in silence."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceReader

from greenline.database.sqlite import backups
from greenline.pipeline.archive import Archive
from greenline.pipeline.follower import Follower
from greenline.pipeline.reading import Discarded, NotRead
from greenline.pipeline.source import Greenline, Narrowing
from greenline.pipeline.source_kept import Kept
from greenline.pipeline.source_options import Asked
from greenline.pipeline.twin import Twin
from tests.pipeline.orders import Order

Offset = dict[str, Any]


def follow(archive: Path, order: Order, base: Path | None = None) -> None:
    with Follower(Archive(archive), order, base=base) as follower:
        follower.advance()


def batch(archive: Path, since: Offset | None, **options: str) -> tuple[Offset, list[tuple[Any, ...]]]:
    """What a stream of `t` is told since a checkpoint: which is the next one, and how each row was changed."""
    source = Greenline({"archive": str(archive), "table": "t", **options})
    reader = source.streamReader(source.schema())
    start = since or reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    found = [
        (row["_commit_version"], row["_change_type"], row["id"])
        for part in reader.partitions(start, end)
        for some in reader.read(part)
        if isinstance(some, pa.RecordBatch)
        for row in some.to_pylist()
    ]
    reader.stop()
    return json.loads(json.dumps(end)), found


def test_an_archive_that_begins_later_does_not_continue_a_checkpoint(tmp_path: Path) -> None:
    """The order was discarded while the stream was away, and a new archive begins with a backup: what was deleted
    before that is in nobody's changes."""
    kept, order = tmp_path / "kept", Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    order.of("INSERT INTO t VALUES (1), (2)")
    follow(kept, order)
    mark, rows = batch(kept, None)
    assert [row[1:] for row in rows] == [("insert", 1), ("insert", 2)]

    order.of("DELETE FROM t WHERE id = 1")
    twin = Twin(tmp_path / "replica")
    for each in order.bundles:
        twin.apply(each)
    twin.commit()
    twin.close()
    backups.take(tmp_path / "replica", tmp_path / "base.db")
    order.low = len(order.bundles)
    order.of("INSERT INTO t VALUES (3)")
    shutil.rmtree(kept)
    follow(kept, order, tmp_path / "base.db")

    with pytest.raises(Discarded, match="what was changed between 2 and that"):
        batch(kept, mark)
    with pytest.raises(Discarded, match="what was changed between 1 and that"):
        batch(kept, None, first="2")
    assert [row[1:] for row in batch(kept, None)[1]] == [("insert", 2), ("insert", 3)], "who begins is told the state"


def test_that_a_table_was_dropped_is_told_to_who_was_away(tmp_path: Path) -> None:
    kept, order = tmp_path / "kept", Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    order.of("INSERT INTO t VALUES (1)")
    follow(kept, order)
    mark, _ = batch(kept, None)
    order.of("INSERT INTO t VALUES (2)")
    order.of("DROP TABLE t")
    follow(kept, order)
    _, rows = batch(kept, mark)
    assert rows == [(3, "insert", 2), (4, "delete", 1), (4, "delete", 2)]


def test_who_reads_beside_a_follower_does_not_wait_for_its_end(tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with Follower(Archive(tmp_path), order) as follower:
        follower.advance()
        begun = time.monotonic()
        kept = Kept(Asked(schema="changes", archive=tmp_path), Archive(tmp_path), order)
        assert kept.newest(None).position == 1
        assert time.monotonic() - begun < 5.0, "a follower's lock is waited for twice as long"


def test_a_beginning_that_is_to_come_is_no_checkpoint(tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    follow(tmp_path, order)
    with pytest.raises(NotRead, match="the order ends with position 1, and first=100 was asked for"):
        batch(tmp_path, None, first="100", patience="1")


def test_only_sessions_that_hand_filters_down_get_a_reader_that_takes_them(tmp_path: Path) -> None:
    """In any other, Spark refuses it."""
    follow(tmp_path, Order())
    for source, takes in ((Greenline, False), (Narrowing, True)):
        made = source({"archive": str(tmp_path)})
        reader = made.reader(made.schema())
        assert (type(reader).pushFilters is not DataSourceReader.pushFilters) is takes
