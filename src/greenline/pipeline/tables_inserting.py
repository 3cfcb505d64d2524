"""Rows that were only inserted, into files of their table: from the archive's changes, by Arrow alone.

What Spark is for is to bring together what was and what has become of it. Rows that nothing was before are only made
typed; as rows of Spark's they cost ten times as much as all else that is done with them. So its workers are given the
archive's files, each of which becomes one of the table's. Whoever writes a large segment has all its rows in hand, and
makes that file as well (`prepare`): then it only gets a second name. Directories with such files become one without
anybody looking at a row, but for those of small files, so that a row is written a few times at most.

    archive/prepared/TABLE/{first}-{last}.parquet      as long as the tables are not written up to there

Nobody relies on what is prepared: it is as good as the process that made it, and the next follower throws it away.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from greenline.pipeline import collecting, glance, source_table
from greenline.pipeline.capture import INSERT
from greenline.pipeline.captured import Column
from greenline.pipeline.changes import CHANGES
from greenline.pipeline.pins import link
from greenline.pipeline.segments import COMPRESSION
from greenline.pipeline.tables_book import files_in, folder, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREPARED = "prepared"
FEW = 2
"""Files that are not worth a job of Spark's."""
TASKS = 2
"""For each core: beginning one costs Java as much as some of the files take."""
SMALL = 20_000
"""A file with fewer rows is made one with others; of a segment with more rows of a table its file is prepared."""
_VERSION = "_commit_version"
_OTHERS = tuple(name for name in CHANGES.names if name != _VERSION)
_OF_CHANGES = ("_change_type", _VERSION, "_commit_timestamp")


def write(
    spark: SparkSession,
    aside: Path,
    archive: Path,
    changes: Sequence[Path],
    table: str,
    schema: pa.Schema,
    first: int,
    last: int,
) -> int:
    """Versions of a table's rows, as `versions.inserted` gives them, from these files of an archive, which may have
    other names elsewhere, into the directory `aside`: how many there are."""
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    taken = {path: _take_prepared(_prepared(archive, table, path.stem), aside, schema, first, last) for path in changes}
    count, rest = sum(filter(None, taken.values())), [path for path, rows in taken.items() if rows is None]
    made = partial(_write_file, aside=aside, table=table, schema=schema, first=first, last=last)
    if len(rest) <= FEW:
        return count + sum(map(made, rest))
    context = spark.sparkContext
    tasks = min(len(rest), TASKS * context.defaultParallelism)
    return count + sum(context.parallelize(rest, tasks).map(made).collect())


def prepare(archive: Path, name: str, changes: pa.Table, tables: Mapping[str, Sequence[Column]]) -> None:
    """Of a segment of this name: the files of tables that it inserts much into, and does nothing else to."""
    kinds = changes.group_by(["table", "_change_type"]).aggregate([([], "count_all")])
    counts = Counter(dict.fromkeys(tables, 0))
    for table, kind, count in zip(*(column.to_pylist() for column in kinds.columns), strict=True):
        counts[table] += count if kind == INSERT else -changes.num_rows
    for table in (each for each in sorted(tables) if counts[each] >= SMALL):
        columns = [(column.name, column.declared) for column in tables[table]]
        if not source_table.clashing(columns):
            path = _prepared(archive, table, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            schema = source_table.schema_of(columns)
            wanted = changes.filter(pc.equal(changes.column("table"), table))
            _write_versions(path.with_suffix(".part"), path, [_versions(each, schema) for each in wanted.to_batches()])


def forget_prepared(archive: Path, position: int | None = None) -> None:
    """What was prepared up to a position, or all."""
    for path in (archive / PREPARED).glob("*/*"):
        if position is None or _range_of(path)[1] <= position:
            path.unlink(missing_ok=True)


def join(aside: Path, directories: Sequence[Path]) -> None:
    """What is in these, which are `alike`, into one: large files under a second name, and small ones as one file."""
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    small: list[Path] = []
    for number, path in enumerate(each for directory in directories for each in files_in(directory)):
        if pq.read_metadata(path).num_rows < SMALL:
            small.append(path)
        else:
            link(path, aside / f"{number:06}.parquet")
    if small:
        rows = pa.concat_tables([pq.read_table(path) for path in small])
        pq.write_table(rows, aside / "small.parquet", compression=COMPRESSION, use_dictionary=False)


def alike(directories: Sequence[Path]) -> int:
    """How many of the last of these have files of the same columns."""
    schemas = [set(map(schema_of, files_in(each))) for each in reversed(directories)]
    return sum(1 for _ in takewhile(lambda each: len(schemas[0] | each) == 1, schemas))


def _write_file(changes: Path, *, aside: Path, table: str, schema: pa.Schema, first: int, last: int) -> int:
    """Also by two at a time: then both write the same."""
    found = glance.rows(changes, _VERSION, _OTHERS, first, last)
    wanted = found.filter(pc.equal(found.column("table"), table)).select(CHANGES.names).combine_chunks()
    if wanted.num_rows:
        with collecting.paused():
            made = [_versions(batch, schema) for batch in wanted.to_batches()]
        _write_versions(aside / f".{changes.stem}-{os.getpid()}", aside / changes.name, made)
    return int(wanted.num_rows)


def _write_versions(mine: Path, path: Path, made: list[pa.RecordBatch]) -> None:
    pq.write_table(pa.Table.from_batches(made), mine, compression=COMPRESSION, use_dictionary=False)
    mine.replace(path)


def _take_prepared(path: Path, aside: Path, schema: pa.Schema, first: int, last: int) -> int | None:
    """How many rows that is; None: there is nothing, or it is not just what is wanted."""
    begin, end = _range_of(path)
    if not path.exists() or begin < first or end > last:
        return None
    try:
        found = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return None  # nobody has forced it, and the power was lost
    nothing = pa.RecordBatch.from_pylist([], CHANGES)
    if not found.schema.to_arrow_schema().equals(_versions(nothing, schema).schema):
        return None  # its columns were others then
    link(path, aside / path.name)
    return int(found.num_rows)


def _prepared(archive: Path, table: str, name: str) -> Path:
    return archive / PREPARED / folder(table) / f"{name}.parquet"


def _range_of(path: Path) -> tuple[int, int]:
    first, _, last = path.stem.partition("-")
    return int(first), int(last)


def _versions(changes: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    typed = source_table.typed(changes, schema)
    keys, rows = changes.column("key").to_pylist(), changes.column("row").to_pylist()
    columns = {name: typed.column(name) for name in schema.names if name not in _OF_CHANGES}
    columns["_valid_from"] = typed.column(_VERSION)
    columns["_check"] = pa.array(map(crc32, rows, map(crc32, keys)), pa.int64(), size=len(rows))  # as of both, joined
    columns["_valid_to"] = pa.nulls(len(rows), pa.int64())
    return pa.RecordBatch.from_pydict(columns)
