"""A glance says that all is as expected only if it is; and what was inserted is written as Spark would write it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import glance, source_table, tables_inserting, versions
from greenline.pipeline.archive import ACTIONS, BUNDLES, CHANGES, KINDS, Archive
from greenline.pipeline.follower import Follower, Sizes
from tests.pipeline.orders import lively

LAST = 60
Spoiled = Callable[[pa.Table], pa.Table]


def followed(path: Path) -> dict[str, list[Path]]:
    """Some segments, and their files."""
    archive = Archive(path)
    with Follower(archive, lively(LAST), sizes=Sizes(segment_actions=50)) as follower:
        follower.advance()
    files = {kind: archive.files(kind) for kind in KINDS}
    assert len(files[BUNDLES]) > 2
    return files


def test_what_a_follower_has_written_is_as_expected_from_anywhere_to_anywhere(tmp_path: Path) -> None:
    files = followed(tmp_path)
    assert glance.is_expected(files, 1, LAST)
    archive = Archive(tmp_path)
    some = {kind: archive.files(kind, 7, 50) for kind in KINDS}
    assert glance.is_expected(some, 7, 50)
    assert not glance.is_expected(some, 7, LAST), "the last ones are missing"
    assert glance.kinds(files[CHANGES], 1, 2) == {"t": {"insert"}}
    assert glance.kinds(files[CHANGES], 1, LAST) == {"t": {"insert", "delete", "update_preimage", "update_postimage"}}


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        pytest.param(BUNDLES, lambda rows: rows.slice(1), id="a bundle is missing"),
        pytest.param(BUNDLES, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), id="a bundle is there twice"),
        pytest.param(ACTIONS, lambda rows: rows.slice(1), id="an action is missing"),
        pytest.param(ACTIONS, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), id="an action is there twice"),
        pytest.param(
            ACTIONS,
            lambda rows: rows.set_column(1, "sub", pc.multiply(rows.column("sub"), 2)),
            id="a number is not used",
        ),
        pytest.param(
            BUNDLES,
            lambda rows: rows.set_column(
                rows.column_names.index("actions"), "actions", pa.array([0] * len(rows), pa.int32())
            ),
            id="changes where nobody asked for anything",
        ),
    ],
)
def test_what_is_odd_is_seen(kind: str, spoil: Spoiled, tmp_path: Path) -> None:
    files = followed(tmp_path)
    path = files[kind][1]
    pq.write_table(spoil(pq.read_table(path)), path)
    assert not glance.is_expected(files, 1, LAST)


def test_rows_that_were_inserted_are_written_as_spark_would_write_them(spark: SparkSession, tmp_path: Path) -> None:
    """Values that fit their column, and others."""
    files = followed(tmp_path)[CHANGES]
    assert glance.kinds(files, 4, 12) == {"t": {"insert"}}
    for declared in ("INTEGER", "TEXT"):
        schema = source_table.schema_of([("id", "INTEGER"), ("a", declared), ("b", "TEXT"), ("none", "")])
        aside = tmp_path / declared
        count = tables_inserting.write(spark, aside, tmp_path, files, "t", schema, 4, 12)
        changes = spark.read.parquet(*map(str, files)).where("_commit_version BETWEEN 4 AND 12")
        expected = versions.inserted(versions.typed(schema)(changes))
        found = spark.read.parquet(str(aside)).select(*expected.columns)
        assert found.schema.simpleString() == expected.schema.simpleString()
        rows = [sorted(map(str, frame.collect())) for frame in (found, expected)]
        assert rows[0] == rows[1]
        assert len(rows[0]) == count > 0
