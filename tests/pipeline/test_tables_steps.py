"""The steps and expectations, each on a few rows; and what needs no Spark at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from greenline.pipeline import progress, source_table, tables_book, versions
from greenline.pipeline.changes import CHANGES
from greenline.pipeline.expectations import LOG, Fingerprint, Unexpected, check, compare
from greenline.pipeline.graph import Step, joined
from greenline.pipeline.lag import Lag
from greenline.pipeline.progress import Progress
from greenline.pipeline.tables_book import BadBook, Book, Table

SCHEMA = source_table.schema_of([("name", "TEXT"), ("size", "INTEGER")])
STEPS = (
    Step("typed", ("changes",), versions.typed(SCHEMA)),
    Step("followed", ("there", "typed"), versions.followed),
    Step("versions", ("followed",), versions.versions),
)

Change = tuple[int, str, str, list[object]]
"""Position, kind, key, values."""


def changed(spark: SparkSession, changes: Sequence[Change]) -> DataFrame:
    pack = msgspec.msgpack.encode
    columns = json.dumps(["name", "size"])
    rows = [("t", pack([key]), columns, pack(row), kind, position, None) for position, kind, key, row in changes]
    return spark.createDataFrame(pa.Table.from_arrays(_columns(rows), schema=CHANGES))


def _columns(rows: Sequence[tuple[object, ...]]) -> list[pa.Array]:
    listed = zip(*rows, strict=True) if rows else ([] for _ in CHANGES)
    return [pa.array(list(column), field.type) for column, field in zip(listed, CHANGES, strict=True)]


def told(frame: DataFrame) -> list[tuple[str, int, int | None]]:
    """Name, and the positions from and to which a row was so."""
    rows = frame.select("name", versions.FROM, versions.TO).collect()
    return sorted(((row[0], row[1], row[2]) for row in rows), key=str)


def test_what_still_is_after_one_range_is_what_was_there_before_the_next(spark: SparkSession) -> None:
    first: list[Change] = [(1, "insert", "a", ["ann", 1]), (2, "insert", "b", ["bob", 2])]
    second: list[Change] = [
        (3, "update_preimage", "a", ["ann", 1]),
        (3, "update_postimage", "a", ["amy", 1]),
        (4, "delete", "b", ["bob", 2]),
        (4, "insert", "b", ["ben", 2]),
        (5, "insert", "c", ["cat", 3]),
        (6, "delete", "c", ["cat", 3]),
    ]
    nothing = versions.inserted(versions.typed(SCHEMA)(changed(spark, [])))
    once = joined(STEPS, {"there": nothing, "changes": changed(spark, first)})["versions"].localCheckpoint()
    twice = joined(STEPS, {"there": once, "changes": changed(spark, second)})["versions"].localCheckpoint()

    assert told(once) == [("ann", 1, None), ("bob", 2, None)]
    assert told(twice) == [("amy", 3, None), ("ann", 1, 3), ("ben", 4, None), ("bob", 2, 4), ("cat", 5, 6)]
    assert {row["name"] for row in versions.between(twice, 5).collect()} == {"amy", "ben", "cat"}
    # As if all had been one range.
    assert told(joined(STEPS, {"there": nothing, "changes": changed(spark, first + second)})["versions"]) == told(twice)


def test_a_row_that_is_changed_and_was_not_there_is_a_contradiction(spark: SparkSession) -> None:
    changes: list[Change] = [
        (1, "insert", "a", ["ann", 1]),
        (2, "insert", "a", ["amy", 1]),
        (3, "delete", "b", ["bob", 2]),
        (4, "insert", "c", ["cat", 3]),
    ]
    nothing = versions.inserted(versions.typed(SCHEMA)(changed(spark, [])))
    followed = joined(STEPS, {"there": nothing, "changes": changed(spark, changes)})["followed"]
    assert sorted(row[versions.FROM] for row in versions.contradictions(followed).collect()) == [2, 3]


@pytest.mark.parametrize(
    ("had", "value", "declared", "shown", "other"),
    [
        ("bigint", 5, "TEXT", "5", None),
        ("bigint", 5, "BLOB", None, "5"),
        ("double", 2.7, "INTEGER", None, "2.7"),
        ("boolean", True, "TEXT", None, "1"),
        ("binary", b"\x00\xff", "TEXT", None, '{"blob":"00ff"}'),
        ("string", 'say "five"', "INTEGER", None, r'"say \"five\""'),
        ("string", None, "INTEGER", None, None),
    ],
)
def test_a_value_that_was_of_another_type_is_made_to_fit_or_told_beside(
    spark: SparkSession, had: str, value: object, declared: str, shown: object, other: str | None
) -> None:
    columns = f"x {had}, _key binary, _other map<string, string>, _valid_from bigint"
    before = spark.createDataFrame([(value, b"k", {"y": "1"}, 1), (None, b"l", None, 1)], columns)
    row, nothing = versions.shaped(before, source_table.schema_of([("X", declared)])).orderBy("_key").collect()
    assert row["X"] == shown
    assert row["_other"] == {"y": "1"} | ({} if other is None else {"X": other})
    assert (nothing["X"], nothing["_other"]) == (None, None)


# Expectations.

BUNDLES = [(1, 2), (2, 1), (3, 0)]
ACTIONS = [(1, 0), (1, 1), (2, 0)]
CHANGED = [("t", 1), ("t", 2)]


def frames(
    spark: SparkSession,
    bundles: Sequence[tuple[object, int]] = BUNDLES,
    actions: Sequence[tuple[object, int]] = ACTIONS,
    changes: Sequence[tuple[object, int]] = CHANGED,
) -> dict[str, DataFrame]:
    def of(columns: str, rows: Sequence[tuple[object, int]]) -> DataFrame:
        return spark.sql(f"SELECT * FROM VALUES {', '.join(map(str, rows))} AS t({columns})")

    return {
        "positions": spark.range(1, 4).withColumnRenamed("id", "position"),
        "bundles": of("position, actions", bundles),
        "actions": of("position, sub", actions),
        "changes": of("table, _commit_version", changes),
    }


def test_a_log_that_is_as_expected_passes(spark: SparkSession) -> None:
    check(LOG, frames(spark))


@pytest.mark.parametrize(
    ("spoilt", "step", "expected", "shown"),
    [
        ({"bundles": [*BUNDLES, (2, 1)]}, "bundles", "each position is there once", ["2"]),
        ({"bundles": [(1, 2), (2, 1), (4, 0)]}, "bundles", "no position is missing, and none is too many", ["3", "4"]),
        ({"actions": [(1, 0), (1, 2), (1, 2)]}, "actions", "numbered from 0, each once", ["1", "2"]),
        ({"changes": [*CHANGED, ("u", 3)]}, "changes", "a position with actions", ["3"]),
    ],
)
def test_a_log_that_is_not_stops_the_pipeline_and_shows_the_rows(
    spark: SparkSession, spoilt: dict[str, list[tuple[object, int]]], step: str, expected: str, shown: list[str]
) -> None:
    with pytest.raises(Unexpected, match=expected) as stopped:
        check(LOG, frames(spark, **spoilt))
    assert stopped.value.step == step
    assert sorted(str(json.loads(str(row))["position"]) for row in stopped.value.rows) == shown


def test_tables_that_are_not_what_the_database_has_are_named() -> None:
    compare({"t": Fingerprint(2, 7)}, {"t": Fingerprint(2, 7)}, 9)
    with pytest.raises(Unexpected, match=r"position 9.*u: .*rows=0.*rows=1") as stopped:
        compare({"t": Fingerprint(2, 7)}, {"t": Fingerprint(2, 7), "u": Fingerprint(1, 3)}, 9)
    assert len(stopped.value.rows) == 1


# Without Spark.


def test_the_lag_is_the_age_of_the_first_look_that_saw_more() -> None:
    lag = Lag()
    assert lag.seconds(0.0) == 0.0
    lag.seen(10, 1.0)
    lag.seen(10, 2.0)
    lag.seen(20, 3.0)
    assert (lag.positions, lag.seconds(5.0)) == (20, 4.0)
    lag.reached(10)
    assert (lag.positions, lag.seconds(5.0)) == (10, 2.0)
    lag.reached(25)
    assert (lag.positions, lag.seconds(9.0)) == (0, 0.0)
    lag.seen(24, 10.0)
    assert lag.seconds(11.0) == 0.0


def test_a_pipeline_that_has_not_said_anything_for_long_is_not_alive(tmp_path: Path) -> None:
    assert progress.read(tmp_path) is None
    said = Progress(state="running", archived=7, order=9, lag_seconds=1.5, rows={'a"b': 3})
    progress.write(tmp_path, said)
    assert progress.read(tmp_path) == said
    assert not said.is_alive
    text = (tmp_path / progress.METRICS).read_text()
    assert "greenline_pipeline_lag_seconds 1.5" in text
    assert "greenline_pipeline_up 0.0" in text
    assert 'greenline_pipeline_table_rows{table="a\\"b"} 3.0' in text


def test_the_book_is_read_as_it_was_written_and_refused_if_it_is_of_another_form(tmp_path: Path) -> None:
    assert tables_book.read(tmp_path) == Book()
    kept = tables_book.directory("current", "t", 1, 9)
    book = Book(position=9, digest="00", tables={"t": Table(current=(kept,), rows=2)})
    tables_book.write(tmp_path, book)
    assert tables_book.read(tmp_path) == book

    for each in (kept, tables_book.directory("current", "t", 1, 5)):
        (tmp_path / each).mkdir(parents=True)
    tables_book.remove_unused(tmp_path, book)
    assert len(list((tmp_path / "current" / "t").iterdir())) == 2
    tables_book.remove_unused(tmp_path, book, grace=0.0)
    assert [str(each.relative_to(tmp_path)) for each in (tmp_path / "current" / "t").iterdir()] == [kept]

    (tmp_path / tables_book.FILE).write_bytes(msgspec.json.encode(msgspec.structs.replace(book, version=1)))
    with pytest.raises(BadBook, match="the form 1"):
        tables_book.read(tmp_path)


def test_a_directory_knows_its_files_and_misses_each(tmp_path: Path) -> None:
    """One of several would not be missed by who reads them all."""
    for name in ("1.parquet", "2.parquet", ".1.parquet.crc", "_SUCCESS"):
        (tmp_path / name).write_text(name)
    tables_book.list_files(tmp_path)
    (tmp_path / "3.parquet").touch()  # of nobody's
    assert tables_book.files_in(tmp_path) == [tmp_path / "1.parquet", tmp_path / "2.parquet"]

    (tmp_path / "1.parquet").write_text("1.pa")
    with pytest.raises(BadBook, match=r"1\.parquet has 4 bytes, not 9; bring it back"):
        tables_book.files_in(tmp_path)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(BadBook, match=r"not as it was written: .*1\.parquet"):
        tables_book.files_in(tmp_path)
    (tmp_path / tables_book.LIST).write_text("{")
    with pytest.raises(BadBook, match="not as it was written"):
        tables_book.files_in(tmp_path)


@pytest.mark.parametrize("name", ["..", "_x", "a/b", "ä ö", "%2E"])
def test_a_table_has_a_folder_of_its_own_whatever_it_is_called(name: str) -> None:
    folder = tables_book.folder(name)
    assert "/" not in folder
    assert folder[0] not in "._"
