"""Changes, as rows of the archive: each with its table, position and time, and all that it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from greenline.pipeline.archive import CHANGES, Archive
from greenline.pipeline.capture import AFTER, BEFORE, INSERT, Changed
from greenline.pipeline.changes import changes_table, packed, values_of
from greenline.pipeline.follower import Follower
from tests.pipeline.orders import NOW, SECOND, Order


def test_changes_are_rows_with_their_position_and_time(tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID", "INSERT INTO t VALUES ('x', 1)")
    order.of("UPDATE t SET b = 2.5")
    with Follower(Archive(tmp_path), order) as follower:
        follower.advance()
    rows = pa.concat_tables(pq.read_table(path) for path in Archive(tmp_path).files(CHANGES)).to_pylist()
    assert [_told(row) for row in rows] == [
        ("t", ["x"], ["a", "b"], ["x", 1], INSERT, 1, _at(1)),
        ("t", ["x"], ["a", "b"], ["x", 1], BEFORE, 2, _at(2)),
        ("t", ["x"], ["a", "b"], ["x", 2.5], AFTER, 2, _at(2)),
    ]


def test_every_value_survives_in_a_packed_row() -> None:
    values = (-(2**63), 2**63 - 1, -0.0, 1e-300, 2.0, "", "a\0b", "\U0001f600", b"", b"\0\xff", None)
    none = msgspec.msgpack.Ext(1, b"\xff")
    columns = tuple(f"c{place}" for place in range(len(values) + 1))
    table = changes_table([(3, [packed(Changed("t", columns, 1, INSERT, [(7, *values, none)]))])], {})
    (row,) = table.to_pylist()
    *found, last = values_of(row["row"])
    assert repr(found) == repr(list(values)), "also 2.0 and -0.0"
    assert last == none
    assert values_of(row["key"]) == [7]
    assert row["_commit_timestamp"] is None


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    packed = values_of(row["key"]), msgspec.json.decode(row["columns"]), values_of(row["row"])
    return (row["table"], *packed, row["_change_type"], row["_commit_version"], row["_commit_timestamp"])


def _at(position: int) -> datetime:
    return datetime.fromtimestamp((NOW + position * SECOND) / 1e6, UTC)
