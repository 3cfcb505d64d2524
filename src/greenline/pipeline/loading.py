"""Loading: the rows of a file into a table of the cluster, through Spark and the sink.

A file is cut the same way on every machine, so that a load can be taken up elsewhere. The values of a CSV file are
taken as text, and the table's own types make of them what they say; only for a table that is made for them are types
guessed, since 007 may be a number or a name. What a guess would bend is refused.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    DoubleType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from greenline.client import Error
from greenline.pipeline import loading_files, reaching, sink_ledger
from greenline.pipeline.causes import cause
from greenline.pipeline.reaching import BadOption

_SETTINGS = {
    # Otherwise as many as there are cores here.
    "spark.sql.files.minPartitionNum": "8",
    # What names of directories say is text, as what a CSV file says.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_TOLD_WITHIN_S = 10.0
_NOTHING = "\ufdd0"
"""No letter: whatever has no quotes and no letters is read as if it were this, and this is NULL."""
_DIGITS = 17
"""A double that was written with all that it has is read as the same one."""
_MANY_DIGITS = r"^\s*[+-]?\d{16,}\s*$"
_OURS = re.compile(r"^(?:\w+\.)*greenline\.[\w.]+: (.+)$", re.MULTILINE)
_MISTAKES = re.compile(
    r"^greenline\.(?:pipeline\.reaching\.BadOption|client\.errors\.Unauthorised): (.+)$", re.MULTILINE
)


class Loaded(msgspec.Struct, frozen=True):
    load: str
    rows: int
    """Of this load that are in the table, also from earlier runs of it."""


class NotLoaded(Exception):
    """Not, or not all: why, how many rows are in the table all the same, and how to go on."""


def load(
    spark: SparkSession,
    file: Path,
    table: str,
    options: Mapping[str, str],
    *,
    name: str | None = None,
    is_created: bool = False,
    kind: str | None = None,
) -> Loaded:
    """`options`: where the cluster is (`reaching`), and whatever else the sink knows.

    Raises `BadOption`; the client's `Error` if nobody answers, or does not let us in; `NotLoaded`.

    `name`: of the load. Who gives the name of one that did not come to its end goes on with it. `kind`: of the file, if
    its name does not tell.
    """
    name = name or secrets.token_hex(8)
    kind = kind or _kind(file)
    reach = reaching.reach(options)
    asyncio.run(_check_in(reach, name, table if is_created and kind == "csv" else None))
    try:
        with _settings(spark, _SETTINGS):
            frame = read(spark, file, kind, is_created)
            if not frame.columns or not frame.rdd.getNumPartitions():
                raise BadOption(f"{file} has no rows: there is nothing to load")
            partitions = str(frame.rdd.getNumPartitions())
            told = {**options, "table": table, "load": name, "partitions": partitions, "create": str(is_created)}
            frame.write.format("greenline").options(**told).mode("append").save()
        return Loaded(name, asyncio.run(_total(reach, name)))
    except (PySparkException, Py4JJavaError) as error:
        if mistakes := _MISTAKES.findall(str(error)):
            raise BadOption(mistakes[-1]) from error
        raise NotLoaded(f"{_said(error, file)}{_how_far(reach, name)}") from error


def _kind(file: Path) -> str:
    kind = loading_files.kind_of(file)
    if kind is None:
        raise BadOption(f"what kind of file is {file}? Say csv, json (an object a line) or parquet")
    return kind


def read(spark: SparkSession, file: Path, kind: str, is_created: bool) -> DataFrame:
    """Its rows. Raises `BadOption`; a line that cannot be read is found when it is loaded."""
    if kind not in loading_files.KINDS.values():
        raise BadOption(f"files of kind {kind} cannot be loaded: write csv, json or parquet")
    loading_files.check(file, kind)
    # A line that cannot be read stops the load; Spark would else make NULLs of it.
    reader = spark.read.option("mode", "FAILFAST")
    if kind == "csv":
        is_long = loading_files.has_long_rows(file)
        reader = reader.options(header=True, enforceSchema=False, quote='"', escape='"', multiLine=is_long)
        reader = reader.options(nullValue=_NOTHING, emptyValue="")  # "" is a text without letters
        frame = reader.csv(str(file), inferSchema=is_created)
        guessed = frame.schema
        if any(not isinstance(field.dataType, StringType) for field in guessed):
            texts = reader.schema(_as_texts(guessed, guessed.names)).csv(str(file))
            frame = texts.select(*(_guessed(field) for field in guessed))
    else:
        frame = reader.format(kind).load(str(file))
    if kind != "parquet":
        _check_guesses(reader.format(kind), file, frame.schema)
    return frame


def _as_texts(schema: StructType, names: Collection[str]) -> StructType:
    return StructType([StructField(each.name, StringType()) if each.name in names else each for each in schema])


def _guessed(field: StructField) -> Column:
    """Whoever puts all in quotes puts nothing in quotes as well: where numbers are, it is no text."""
    text = f.col(_quoted(field.name))
    if isinstance(field.dataType, StringType):
        return text
    return f.when(text != "", text).cast(field.dataType).alias(field.name)


def _check_guesses(reader: DataFrameReader, file: Path, guessed: StructType) -> None:
    """One number with a point in it makes a double of each in its column, which has 15 digits for sure; and a moment is
    counted in microseconds."""
    kinds = {field.name: kind for field in guessed for kind in _BENT if isinstance(field.dataType, kind)}
    if not kinds:
        return
    texts = reader.schema(_as_texts(guessed, kinds)).load(str(file))
    bent = [f.when(_BENT[kind](text := f.col(_quoted(name))), text) for name, kind in kinds.items()]
    seen = texts.select(*(text.alias(str(number)) for number, text in enumerate(bent)))
    for row in seen.where(f.coalesce(*seen.columns).isNotNull()).take(1):
        name, found = next((name, text) for name, text in zip(kinds, row, strict=True) if text is not None)
        if kinds[name] is not DoubleType:
            raise BadOption(f"{file} has {found} in its column {name}, which would be cut: make the table yourself")
        raise BadOption(
            f"{file} has {found} in its column {name}, which would be {float(found)} as one of numbers with a point:"
            " make the table yourself, and write the number in quotes if this is JSON"
        )


def _is_bent(text: Column) -> Column:
    """A whole number that is no double, one so large that none is, or one with more digits than any double has."""
    exact, double = text.try_cast("decimal(38,0)"), text.try_cast("double")
    is_another = exact.isNull() | ~exact.eqNullSafe(double.try_cast("decimal(38,0)"))
    digits = f.regexp_replace(f.regexp_replace(text, "[eE].*$", ""), "[^0-9]", "")
    is_long = f.length(f.regexp_replace(digits, "^0+|0+$", "")) > _DIGITS
    is_point = text.rlike("[.]") & double.isNotNull() & is_long
    return (text.rlike(_MANY_DIGITS) & is_another) | is_point | (text.rlike("[0-9]") & f.abs(double).eqNullSafe(inf))


def _is_fine(text: Column) -> Column:
    return text.rlike("[.][0-9]{6}[0-9]*[1-9]")


_BENT: Mapping[type[DataType], Callable[[Column], Column]] = {
    DoubleType: _is_bent,
    TimestampType: _is_fine,
    TimestampNTZType: _is_fine,
}


def _quoted(name: str) -> str:
    """As Spark does."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, had in before.items():
            spark.conf.unset(key) if had is None else spark.conf.set(key, had)


def _said(error: Exception, file: Path) -> str:
    """Ours, from the end of a worker's traceback; or else what Spark says was the cause: it does not name the file."""
    if ours := _OURS.findall(str(error)):
        return str(ours[-1])
    return f"{file} cannot be loaded: {cause(error)}"


def _how_far(reach: reaching.Reach, name: str) -> str:
    try:
        rows = asyncio.run(_total(reach, name))
    except Error:
        return ""
    return f"\nIn all, {rows} rows of the load {name} are in the table; who gives its name goes on with it"


async def _check_in(reach: reaching.Reach, name: str, made: str | None) -> None:
    """Is somebody there, and are we let in? Before Spark looks at the file. And what is to be `made` with types as they
    are guessed must be new, or this load's: other types may have been meant."""
    async with reach.connected() as db:
        if made is None or not await sink_ledger.columns(db, made, _TOLD_WITHIN_S):
            return
        if not await sink_ledger.is_known(db, name, _TOLD_WITHIN_S):
            raise BadOption(
                f'there is a table {made} already: without option("create", "true") its own types say what values are'
            )


async def _total(reach: reaching.Reach, name: str) -> int:
    async with reach.connected() as db:
        return await sink_ledger.total(db, name, _TOLD_WITHIN_S)
