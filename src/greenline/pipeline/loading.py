"""Loading: the rows of a file into a table of the cluster, through Spark and the sink.

A file is cut the same way on every machine, so that a load can be taken up elsewhere. The values of a CSV file are
taken as text, and the table's own types make of them what they say; only for a table that is made for them are types
guessed, since 007 may be a number or a name.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from greenline.client import Error
from greenline.pipeline import loading_files, reaching, sink_ledger
from greenline.pipeline.causes import cause
from greenline.pipeline.reaching import BadOption

_PARTITIONS = {"spark.sql.files.minPartitionNum": "8"}
"""Otherwise as many as there are cores here."""
_TOLD_WITHIN_S = 10.0
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
    reach = reaching.reach(options)
    asyncio.run(_check_in(reach))
    try:
        with _settings(spark, _PARTITIONS):
            frame = read(spark, file, kind or _kind(file), is_created)
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
    loading_files.check(file, kind)
    # A line that cannot be read stops the load; Spark would else make NULLs of it.
    reader = spark.read.option("mode", "FAILFAST")
    match kind:
        case "csv":
            quoting = (
                reader.option("quote", '"').option("escape", '"').option("multiLine", loading_files.has_long_rows(file))
            )
            return quoting.csv(str(file), header=True, inferSchema=is_created, enforceSchema=False)
        case "json":
            return reader.json(str(file))
        case "parquet":
            return reader.parquet(str(file))
    raise BadOption(f"files of kind {kind} cannot be loaded: write csv, json or parquet")


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
    return f"\nIn all, {rows} rows of the load {name} are in the table" if rows else ""


async def _check_in(reach: reaching.Reach) -> None:
    """Is somebody there, and are we let in? Before Spark looks at the file."""
    async with reach.connected():
        pass


async def _total(reach: reaching.Reach, name: str) -> int:
    async with reach.connected() as db:
        return await sink_ledger.total(db, name, _TOLD_WITHIN_S)
