"""What changes come to: the rows of a table at any position, and all that it ever had."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from greenline.pipeline.archive import CHANGES, Archive
from greenline.pipeline.capture import AFTER, BEFORE, DELETE, INSERT, Changed
from greenline.pipeline.changes import asof, changes_batch, history, packed, state, values_of
from greenline.pipeline.follower import Follower
from tests.pipeline.orders import NOW, SECOND, Order

STORY = [
    (2, INSERT, 1, "ann"),
    (2, INSERT, 2, "bob"),
    (3, BEFORE, 1, "ann"),
    (3, AFTER, 1, "eve"),
    (5, DELETE, 1, "eve"),
    (6, INSERT, 1, "una"),
    (7, DELETE, 2, "bob"),
    (7, INSERT, 2, "tom"),  # the table was made anew, with the same key
]
STATES = {
    1: [],
    4: [(1, "eve"), (2, "bob")],
    5: [(2, "bob")],
    7: [(1, "una"), (2, "tom")],
}
HISTORY = [(1, "ann", 2, 3), (1, "eve", 3, 5), (1, "una", 6, None), (2, "bob", 2, 7), (2, "tom", 7, None)]


@pytest.fixture(scope="module")
def story(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(STORY, "_commit_version BIGINT, _change_type STRING, id BIGINT, name STRING")


@pytest.mark.slow
def test_the_state_at_a_position_is_the_last_that_was_told_of_each_row(story: DataFrame) -> None:
    found = {at: state(story, at, "id").select("id", "name").sort("id").collect() for at in STATES}
    assert {at: [tuple(row) for row in rows] for at, rows in found.items()} == STATES


@pytest.mark.slow
def test_the_history_says_from_where_to_where_each_row_was_there(story: DataFrame) -> None:
    rows = history(story, "id").select("id", "name", "_from", "_until").sort("id", "_from").collect()
    assert [tuple(row) for row in rows] == HISTORY


@pytest.mark.slow
def test_spark_and_who_has_none_find_the_same_rows_in_an_archive(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (a PRIMARY KEY, b)")
    for number in range(40):
        order.of(f"INSERT INTO t VALUES ({number % 9}, {number}) ON CONFLICT DO UPDATE SET b = b + excluded.b")
        order.of(f"DELETE FROM t WHERE a = {number % 7}", "INSERT INTO t VALUES (NULL, x'00')")
    with Follower(Archive(tmp_path), order) as follower:
        while follower.advance(25) < len(order.bundles):
            pass
    archive = Archive(tmp_path)
    changes = spark.read.parquet(*map(str, archive.files(CHANGES))).where("table = 't'")
    for position in (1, 30, len(order.bundles)):
        rows = [values_of(bytes(row.row)) for row in state(changes, position).collect()]
        assert sorted(rows, key=repr) == sorted((list(row.values()) for row in asof(archive, "t", position)), key=repr)


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
    batch = changes_batch([(3, [packed(Changed("t", columns, 1, INSERT, [(7, *values, none)]))])], {})
    (row,) = batch.to_pylist()
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
