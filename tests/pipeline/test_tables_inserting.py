"""Rows that were only inserted: written again and again, their directories become one, and each row is there once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import source_table, tables_book, tables_inserting, tables_writing
from greenline.pipeline.archive import CHANGES, Archive
from greenline.pipeline.follower import Follower, Sizes
from greenline.pipeline.pins import Pins
from greenline.pipeline.running import Running, Told
from greenline.pipeline.tables import ARCHIVE, Tables
from greenline.pipeline.tables_inserting import PREPARED
from greenline.pipeline.tables_writing import Unwritten
from tests.pipeline.orders import Order

INSERT = "INSERT INTO t (a) VALUES (?)"


def directory(place: Path, *files: list[int], name: str = "a") -> Path:
    place.mkdir()
    for number, values in enumerate(files):
        pq.write_table(pa.table({name: values}), place / f"{number}.parquet")
    tables_book.list_files(place)
    return place


def test_large_files_get_a_second_name_and_small_ones_become_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_inserting, "SMALL", 3)
    parts = [directory(tmp_path / "one", [1, 2, 3], [4]), directory(tmp_path / "two", [5, 6], [7, 8, 9])]
    tables_inserting.join(tmp_path / "joined", parts)
    files = sorted((tmp_path / "joined").iterdir())
    assert sorted(pq.read_table(files).column("a").to_pylist()) == list(range(1, 10))
    large = {path.stat().st_ino for path in (tmp_path / "one" / "0.parquet", tmp_path / "two" / "1.parquet")}
    assert large < {path.stat().st_ino for path in files}
    assert len(files) == 3


def test_only_directories_with_the_same_columns_become_one(tmp_path: Path) -> None:
    parts = [directory(tmp_path / str(each), [each], name="b" if each == 1 else "a") for each in range(4)]
    assert tables_inserting.alike(parts) == 2
    assert tables_inserting.alike(parts[:2]) == 1
    torn = directory(tmp_path / "torn", [1])
    pq.write_table(pa.table({"a": ["text"]}), torn / "1.parquet")
    tables_book.list_files(torn)
    assert tables_inserting.alike([*parts, torn]) == 0


@pytest.mark.parametrize("small", [1, 1_000], ids=["large files", "small files"])
def test_a_table_that_is_only_inserted_into_has_few_directories_and_every_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """Whatever is done to its columns meanwhile; and an update in the end finds all of them."""
    monkeypatch.setattr(tables_writing, "MANY", 4)
    monkeypatch.setattr(tables_inserting, "SMALL", small)
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    written: list[int] = []
    for number in range(14):
        if number == 7:
            order.of("ALTER TABLE t ADD COLUMN b DEFAULT 'new'")
        order.series(INSERT, [(10 * number + each,) for each in range(5)])
        with Running(spark, tmp_path, Told(order)) as work:
            work.run()  # compares with the database of its follower
        written.append(len(tables_book.read(tmp_path).tables["t"].current))
    assert max(written) <= 4
    assert sum(later < sooner for sooner, later in pairwise(written)) >= 3, "they become one"

    order.of("UPDATE t SET a = -a WHERE id % 2")
    with Running(spark, tmp_path, Told(order)) as work:
        ended = work.run()
    assert ended.rows == {"t": 70}
    tables = Tables(spark, tmp_path)
    rows = {row["id"]: int(row["a"]) for row in tables.current("t").collect()}
    said = [10 * number + each for number in range(14) for each in range(5)]
    assert rows == {place: -value if place % 2 else value for place, value in enumerate(said, 1)}
    assert tables.as_of("t", ended.archived - 1).count() == 70


@pytest.mark.parametrize("small", [1, 1_000], ids=["large files", "small files"])
def test_what_is_over_has_few_directories_too_and_every_version_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """Of columns of every type, with values that do not fit theirs now and then."""
    monkeypatch.setattr(tables_writing, "MANY", 4)
    monkeypatch.setattr(tables_inserting, "SMALL", small)
    order = Order()
    order.of(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB, d REAL, e BOOLEAN, f DECIMAL(9, 2), g)"
    )
    order.of("INSERT INTO t VALUES (1, 0, 'b', x'0c', 0.5, 1, 1.25, 'g'), (2, 0, 'b', x'0c', 0.5, 1, 1.25, 'g')")
    written: list[int] = []
    for number in range(1, 14):
        value = number if number % 3 else "'no number'"
        order.of(f"UPDATE t SET a = {value}, d = {number / 4} WHERE id = 1")
        with Running(spark, tmp_path, Told(order)) as work:
            work.run()
        written.append(len(tables_book.read(tmp_path).tables["t"].history))
    assert max(written) <= 4
    assert sum(later < sooner for sooner, later in pairwise(written)) >= 3, "they become one"

    over = Tables(spark, tmp_path).history("t").where("_valid_to IS NOT NULL").orderBy("_valid_from").collect()
    assert [(row["a"], row["d"], row["_valid_to"] - row["_valid_from"]) for row in over] == [
        (number if number % 3 else (None if number else 0), number / 4 or 0.5, 1) for number in range(13)
    ]
    assert [row["_other"] for row in over if row["a"] is None] == [{"a": '"no number"'}] * 4


def test_what_does_anything_but_insert_is_noticed_and_stays_so(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    order.series(INSERT, [(1,), (2,)])
    with Follower(Archive(tmp_path / ARCHIVE), order) as follower:
        unwritten = Unwritten(Tables(spark, tmp_path))
        assert unwritten.are_inserts(follower.advance())
        order.of("UPDATE t SET a = 3 WHERE id = 1")
        assert not unwritten.are_inserts(follower.advance())
        order.series(INSERT, [(4,), (5,)])
        assert not unwritten.are_inserts(follower.advance())


def test_what_is_prepared_is_what_would_be_made_and_taken_only_if_it_fits(spark: SparkSession, tmp_path: Path) -> None:
    """Two large segments; of the second, whoever comes between writes a part only."""
    order, place = Order(), tmp_path / "archive"
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b)")
    for start in range(0, 60_000, 200):
        rows = [(f"{n}", None if n % 3 else n / 7) for n in range(start, start + 200)]
        order.series("INSERT INTO t (a, b) VALUES (?, ?)", rows)
    with Follower(Archive(place), order, prepares=True, sizes=Sizes(segment_actions=30_000)) as follower:
        follower.advance()
        archive = follower.archive
        changes, last = archive.files(CHANGES), archive.last
        schema = source_table.schema_of(archive.columns("t", last))
        prepared = sorted((place / PREPARED / "t").iterdir())
        assert [path.name for path in prepared] == [path.name for path in changes[:2]]

        def write(name: str, last: int = last, schema: pa.Schema = schema) -> Path:
            aside = tmp_path / name
            rows = pq.read_table(changes, filters=[("_commit_version", "<=", last)]).num_rows
            assert tables_inserting.write(spark, aside, place, changes, "t", schema, 1, last) == rows
            return aside

        known = {path.stat().st_ino for path in prepared}

        def taken(aside: Path) -> int:
            return sum(path.stat().st_ino in known for path in aside.iterdir())

        whole, part = write("whole"), write("part", last=last - 20)
        assert (taken(whole), taken(part)) == (2, 1)
        other = write("other", schema=source_table.schema_of([("id", "INTEGER"), ("a", "TEXT"), ("b", "REAL")]))
        assert taken(other) == 0
        prepared[0].unlink()
        prepared[0].touch()  # the power was lost
        assert tables_inserting._take_prepared(prepared[0], tmp_path, schema, 1, last) is None
        tables_inserting.forget_prepared(place)
        again = write("again")
        assert taken(again) == 0
        for path in again.iterdir():
            assert pq.read_table(path).equals(pq.read_table(whole / path.name))
    assert not list((place / PREPARED / "t").iterdir())


def test_what_is_prepared_goes_when_the_tables_are_written_and_with_the_next_follower(
    spark: SparkSession, tmp_path: Path
) -> None:
    order = Order()
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    for start in range(0, 60_000, 200):
        order.series(INSERT, [(each,) for each in range(start, start + 200)])
    prepared = tmp_path / ARCHIVE / PREPARED / "t"
    with Follower(Archive(tmp_path / ARCHIVE), order, prepares=True) as follower:
        follower.advance()
        (ready,) = prepared.iterdir()
        tables = Tables(spark, tmp_path, Pins(tmp_path / "pins"))
        (written,) = tables_writing.write(tables, tables.archive.newest()).tables["t"].current
        assert ready.stat().st_ino in {path.stat().st_ino for path in (tmp_path / written).iterdir()}
    with Follower(Archive(tmp_path / ARCHIVE), order):
        assert not list(prepared.iterdir())
    with Running(spark, tmp_path / "other", Told(order)) as work:
        assert work.run().rows == {"t": 60_000}
    assert not list((tmp_path / "other" / ARCHIVE / PREPARED / "t").iterdir())
