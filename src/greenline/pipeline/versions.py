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
from math import inf
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
    from pyspark.sql.types import StructField

KEY, OTHER, FROM, TO, CHECK = OURS = ("_key", source_table.OTHER, "_valid_from", "_valid_to", "_check")
"""The columns that stand behind the table's own."""
_CHANGE, _LAST = "_change_type", "_last_change"
PART = "_part"
"""Only while versions are written."""
_OTHERS = "map<string,string>"
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


def ended(there: DataFrame, position: int) -> DataFrame:
    """The versions that rows that were there come to, if they all end at a position."""
    return there.withColumn(TO, f.lit(position).cast("long"))


def retold(typed: DataFrame, position: int) -> DataFrame:
    """Of changes from this position on, at which all rows were told anew, as if nothing had been there before it."""
    is_then = f.col(FROM) == position
    kind = f.when(is_then, f.lit(INSERT)).otherwise(f.col(_CHANGE))
    return typed.where(~is_then | (f.col(_CHANGE) != DELETE)).withColumn(_CHANGE, kind)


def between(versions: DataFrame, position: int) -> DataFrame:
    """The rows that were there after a position."""
    return versions.where((f.col(FROM) <= position) & f.coalesce(f.col(TO) > position, f.lit(True)))


def together(frames: Iterable[DataFrame]) -> DataFrame:
    """By the names of their columns, which have one type each."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def shaped(versions: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of this schema, and then ours that are there. A value that another type was declared for, and that
    does not fit, is in `_other` from now on; so is one whose column is gone."""
    kinds = {name.lower(): kind for name, kind in versions.dtypes}
    own = [field for field in from_arrow_schema(schema) if field.name not in _BESIDE]
    wanted = {field.name.lower() for field in own}
    gone = {name: kind for name, kind in versions.dtypes if name not in _BESIDE and name.lower() not in wanted}
    lost = {field.name: kinds[field.name.lower()] for field in own if not _fits(kinds, field)} | gone
    if lost:
        shown = f.map_from_arrays(f.array(*map(f.lit, lost)), f.array(*(_json(*each) for each in lost.items())))
        found = f.map_filter(shown, lambda _, value: value.isNotNull())
        known = f.coalesce(f.col(OTHER), f.create_map().cast(_OTHERS))
        other = f.map_concat(known, found)
        versions = versions.withColumn(OTHER, f.when(f.size(other) > 0, other))
    kept = {field.name for field in own if field.name.lower() in kinds} - lost.keys()
    return versions.select(
        *(
            (named(each.name) if each.name in kept else f.lit(None)).cast(each.dataType).alias(each.name)
            for each in own
        ),
        *(name for name in OURS if name in kinds),
    )


def _fits(kinds: dict[str, str], field: StructField) -> bool:
    """Are its values of its type, or made to be without a loss?"""
    wanted, had = field.dataType.simpleString(), kinds.get(field.name.lower())
    return had is None or had == wanted or (wanted == "string" and had not in ("binary", "boolean"))


def _json(name: str, kind: str) -> Column:
    """As `rows_json` shows what SQLite had."""
    column = named(name)
    match kind:
        case "binary":
            return f.concat(f.lit('{"blob":"'), f.lower(f.hex(column)), f.lit('"}'))
        case "string":
            quoted = f.to_json(f.array(column))
            return f.when(column.isNotNull(), quoted.substr(f.lit(2), f.length(quoted) - 2))
        case "boolean":
            return column.cast("int").cast("string")
        case "double":
            endless = f.when(column > 0, f.lit('{"real":"inf"}')).otherwise(f.lit('{"real":"-inf"}'))
            return f.when(f.abs(column) == inf, endless).otherwise(column.cast("string"))
        case _:
            return column.cast("string")


def clashing(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Columns of a table that ours, or each other, cannot stand beside."""
    return source_table.clashing(columns, _BESIDE)


def named(name: str) -> Column:
    """Whatever it is called."""
    return f.col("`" + name.replace("`", "``") + "`")
