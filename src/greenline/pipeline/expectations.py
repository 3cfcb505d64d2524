"""Expectations on the data: what must be so of what was written, and the rows that say otherwise.

An expectation is a step like any other: it gives the rows that break it. All of them are asked in one query, and one
that is broken stops the pipeline: whoever reads its tables finds what was right before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from greenline.database.sqlite.connection import unhooked
from greenline.database.sqlite.tables import stands
from greenline.pipeline import glance
from greenline.pipeline.captured import every_row, tables_of
from greenline.pipeline.reading import Place
from greenline.replication.port import BundleId
from greenline.replication.replica import chained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 5
"""Rows that are shown of a broken expectation."""
_encode = msgspec.msgpack.Encoder().encode


class Unexpected(Exception):
    """Something is not so: of which step, what was expected, and rows that say otherwise."""

    def __init__(self, step: str, expected: str, rows: Sequence[object]) -> None:
        self.step = step
        self.expected = expected
        self.rows = list(rows)
        shown = "; ".join(map(str, self.rows[:SHOWN]))
        super().__init__(f"{step}: expected that {expected}, but: {shown}")


@dataclass(frozen=True)
class Expectation:
    step: str
    expected: str
    takes: tuple[str, ...]
    broken: Callable[..., DataFrame]
    """Gives the rows that break it."""


def check(expectations: Iterable[Expectation], frames: Mapping[str, DataFrame]) -> None:
    """In one query. Raises `Unexpected`."""
    from pyspark.sql import functions as f

    asked = list(expectations)
    parts = [
        each.broken(*(frames[name] for name in each.takes))
        .limit(SHOWN)
        .select(f.lit(number).alias("number"), f.to_json(f.struct("*")).alias("row"))
        for number, each in enumerate(asked)
    ]
    found = reduce(lambda one, other: one.unionAll(other), parts).collect()
    for number, each in enumerate(asked):
        if rows := [str(row["row"]) for row in found if row["number"] == number]:
            raise Unexpected(each.step, each.expected, rows)


# Of the log.


def doubled(bundles: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return bundles.groupBy("position").agg(f.count("*").alias("times")).where("times > 1")


def missing(positions: DataFrame, bundles: DataFrame) -> DataFrame:
    """`positions`: those that are expected, and no others."""
    from pyspark.sql import functions as f

    both = positions.withColumn("is_expected", f.lit(True)).join(
        bundles.select("position", f.lit(True).alias("is_there")), "position", "full"
    )
    return both.where("is_expected IS NULL OR is_there IS NULL")


def misnumbered(bundles: DataFrame, actions: DataFrame) -> DataFrame:
    """Positions whose actions are not numbered from 0 without gaps, as many as the bundle says."""
    from pyspark.sql import functions as f

    counted = actions.groupBy("position").agg(
        f.count("*").alias("rows"),
        f.count_distinct("sub").alias("subs"),
        f.min("sub").alias("least"),
        f.max("sub").alias("greatest"),
    )
    both = bundles.select("position", f.col("actions").alias("said")).join(counted, "position", "full")
    is_right = "rows = said AND subs = said AND least = 0 AND greatest = said - 1"
    return both.where(f"NOT coalesce({is_right}, said = 0 AND rows IS NULL, false)")


def groundless(bundles: DataFrame, changes: DataFrame) -> DataFrame:
    """Changes at positions where nobody asked for anything."""
    from pyspark.sql import functions as f

    asked = bundles.where("actions > 0").select("position")
    changed = changes.select("table", f.col("_commit_version").alias("position")).distinct()
    return changed.join(asked, "position", "left_anti")


LOG = (
    Expectation("bundles", "each position is there once", ("bundles",), doubled),
    Expectation("bundles", "no position is missing, and none is too many", ("positions", "bundles"), missing),
    Expectation("actions", "those of a bundle are numbered from 0, each once", ("bundles", "actions"), misnumbered),
    Expectation("changes", "each is of a position with actions", ("bundles", "changes"), groundless),
)


def check_chain(paths: Iterable[Path], after: Place, last: int) -> Place:
    """Each bundle in these files continues what the order came to; then where that leads. Raises `Unexpected`."""
    position, digest = after.position, after.digest
    for path in paths:
        found = glance.rows(path, "position", ("digest", "origin", "number", "content"), position + 1, last)
        for at, said, origin, number, content in zip(*(column.to_pylist() for column in found.columns), strict=True):
            digest = chained(digest, BundleId(origin, number), content)
            if at != position + 1 or said != digest:
                broken = {"position": at, "after": position, "says": said.hex(), "comes to": digest.hex()}
                raise Unexpected("bundles", "each continues what the order came to before it", [broken])
            position = at
    return Place(position, digest)


# Of the tables.


@dataclass(frozen=True)
class Fingerprint:
    """How many rows a table has, and what they come to, in whatever order."""

    rows: int
    check: int


def of_database(path: Path) -> tuple[int, dict[str, Fingerprint]]:
    """What is committed in a database that follows, and at which position."""
    connection = unhooked(path)
    try:
        connection.execute("BEGIN")
        found = {}
        for name, table in tables_of(connection).items():
            rows = check = 0
            for row in every_row(connection, table):
                rows += 1
                check += crc32(_encode(row[: table.width]) + _encode(row[table.width :]))
            if rows:
                found[name] = Fingerprint(rows, check)
        return stands(connection).position, found
    finally:
        connection.close()


def compare(tables: Mapping[str, Fingerprint], database: Mapping[str, Fingerprint], position: int) -> None:
    """What was rebuilt, and what the follower's database has, which a replica has as well. Raises `Unexpected`."""
    nothing = Fingerprint(0, 0)
    broken = [
        f"{name}: {tables.get(name, nothing)} rebuilt, {database.get(name, nothing)} there"
        for name in sorted(tables.keys() | database.keys())
        if tables.get(name, nothing) != database.get(name, nothing)
    ]
    if broken:
        raise Unexpected("current", f"the tables rebuilt at position {position} are the database's", broken)
