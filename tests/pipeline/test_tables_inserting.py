"""Rows that were only inserted: written again and again, their directories become one, and each row is there once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import tables_book, tables_inserting, tables_writing
from greenline.pipeline.archive import Archive
from greenline.pipeline.follower import Follower
from greenline.pipeline.running import Running, Told
from greenline.pipeline.tables import ARCHIVE, Tables
from greenline.pipeline.tables_writing import Unwritten
from tests.pipeline.orders import Order

INSERT = "INSERT INTO t (a) VALUES (?)"


def directory(place: Path, *files: list[int], name: str = "a") -> Path:
    place.mkdir()
    for number, values in enumerate(files):
        pq.write_table(pa.table({name: values}), place / f"{number}.parquet")
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
