"""Versions: the rows that a table ever had, each with the positions between which it was so. Plain steps on Spark.

    typed      changes, packed        ->  changes in the table's own columns (`source_table` says their types), but
                                          for what rows were before
    followed   rows that were there,  ->  both, each with what came before and after it
               and typed changes
    versions   followed               ->  rows, each with the position from which it was so (`_valid_from`) and the
                                          first one at which it was not any more (`_valid_to`; none: it still is)

They hold for whatever range of positions is taken at a time: what still is after one is what was there before the next.
Beside the table's own columns a version has `_key`, which says which row it is; `_other`, the values that do not fit
their column; and `_check`, a checksum of the row as the database has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema

from greenline.pipeline import source_table
from greenline.pipeline.capture import BEFORE, DELETE, INSERT
from greenline.pipeline.changes import CHANGES

if TYPE_CHECKING:
    from pyspark.sql import Column

KEY, OTHER, FROM, TO, CHECK = OURS = ("_key", source_table.OTHER, "_valid_from", "_valid_to", "_check")
"""The columns that stand behind the table's own."""
_CHANGE, _LAST = "_change_type", "_last_change"
PART = "_part"
"""Only while versions are written."""
_BESIDE = frozenset(field.name for field in source_table.OURS) | frozenset((*OURS, _LAST, PART))


def typed(schema: pa.Schema) -> Callable[[DataFrame], DataFrame]:
    """Of one table, as columns of this schema."""

    def open_rows(*columns: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_arrays(list(columns), names=CHANGES.names)
        return pa.StructArray.from_arrays(source_table.typed(batch, schema).columns, fields=list(schema))

    opened = arrow_udf(open_rows, from_arrow_schema(schema))  # type: ignore[call-overload]  # its kind is in the hints

    def step(changes: DataFrame) -> DataFrame:
        check = f.crc32(f.concat("key", "row")).alias(CHECK)
        found = (
            changes.where(f.col(_CHANGE) != BEFORE)
            .select(opened(*map(named, CHANGES.names)).alias("of"), check)
            .select("of.*", CHECK)
        )
        return found.withColumnRenamed("_commit_version", FROM).drop("_commit_timestamp")

    return step


def inserted(typed: DataFrame) -> DataFrame:
    """The versions, if nothing but inserts is among the changes."""
    return typed.drop(_CHANGE).withColumn(TO, f.lit(None).cast("long"))


def followed(there: DataFrame, typed: DataFrame) -> DataFrame:
    known = together([there.drop(TO).withColumn(_CHANGE, f.lit(INSERT)), typed])
    # What is deleted and inserted again at one position, under the same key, is there.
    following = Window.partitionBy(KEY).orderBy(FROM, f.col(_CHANGE) != DELETE)
    return known.withColumns({TO: f.lead(FROM).over(following), _LAST: f.lag(_CHANGE).over(following)})


def versions(followed: DataFrame) -> DataFrame:
    return followed.where(f.col(_CHANGE) != DELETE).drop(_CHANGE, _LAST)


def contradicts() -> Column:
    """Of what is followed: a row is changed that was not there, or inserted where one is."""
    was_there = f.coalesce(f.col(_LAST) != DELETE, f.lit(False))
    return was_there == (f.col(_CHANGE) == INSERT)


def contradictions(followed: DataFrame) -> DataFrame:
    return followed.where(contradicts()).select(f.hex(KEY).alias(KEY), FROM, _CHANGE, _LAST)


def between(versions: DataFrame, position: int) -> DataFrame:
    """The rows that were there after a position."""
    return versions.where((f.col(FROM) <= position) & f.coalesce(f.col(TO) > position, f.lit(True)))


def together(frames: Iterable[DataFrame]) -> DataFrame:
    """By the names of their columns; where a column has two types, because its table was made anew, as text."""
    return reduce(_both, frames)


def shaped(versions: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of this schema, and then ours that are there."""
    there = {name.lower() for name in versions.columns}
    ours = [name for name in OURS if name in there]
    own = [field for field in from_arrow_schema(schema) if field.name not in _BESIDE]
    return versions.select(
        *(
            (named(field.name) if field.name.lower() in there else f.lit(None))
            .try_cast(field.dataType)
            .alias(field.name)
            for field in own
        ),
        *ours,
    )


def clashing(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Columns of a table that ours cannot stand beside."""
    return [name for name, _ in columns if name.lower() in _BESIDE]


def named(name: str) -> Column:
    """Whatever it is called."""
    return f.col("`" + name.replace("`", "``") + "`")


def _both(one: DataFrame, other: DataFrame) -> DataFrame:
    """Names are the same in any case, as they are for SQLite."""
    types = {name.lower(): kind for name, kind in one.dtypes}
    torn = {name.lower() for name, kind in other.dtypes if types.get(name.lower(), kind) != kind}
    return _as_text(one, torn).unionByName(_as_text(other, torn), allowMissingColumns=True)


def _as_text(frame: DataFrame, names: set[str]) -> DataFrame:
    """What is no text, bytes, in hexadecimal digits."""
    return frame.withColumns(
        {
            name: f.hex(named(name)) if kind == "binary" else named(name).cast("string")
            for name, kind in frame.dtypes
            if name.lower() in names
        }
    )
