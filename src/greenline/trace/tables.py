"""Tables: streams into Arrow and Parquet, and a directory of either back into one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.kernel.evidence import Row
from greenline.trace.schema import COLUMNS, SCHEMA, VERSION
from greenline.trace.stream import SUFFIX, NotATrace, TraceReader

PARQUET = ".parquet"
ROW_GROUP = 100_000
_FIELDS = COLUMNS[1:]


def to_batch(run: str, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [pa.array([run] * len(rows), pa.string())]
    columns += [
        pa.array([getattr(row, name) for row in rows], SCHEMA.field(name).type)  # column by column: no dict per row
        for name in _FIELDS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def to_table(runs: Iterable[tuple[str, Sequence[Row]]]) -> pa.Table:
    return pa.Table.from_batches([to_batch(run, rows) for run, rows in runs], schema=SCHEMA)


def to_parquet(stream: Path, parquet: Path | None = None) -> tuple[Path, int]:
    """Convert one stream, block by block, so that its size does not matter; returns the file and its rows."""
    parquet = parquet or stream.with_suffix(PARQUET)
    unfinished = parquet.with_suffix(PARQUET + ".part")
    count = 0
    with pq.ParquetWriter(unfinished, SCHEMA) as writer:
        for table in _row_groups(_batches(stream)):
            writer.write_table(table)
            count += table.num_rows
    unfinished.rename(parquet)
    return parquet, count


def load(place: Path) -> pa.Table:
    """The trace in a file or a directory, from Parquet or, where it was not converted, from its streams."""
    files = trace_files(place)
    return pa.concat_tables([load_file(path) for path in files])


def trace_files(place: Path) -> list[Path]:
    """What to read at this place: every Parquet file, and every stream that has none beside it."""
    if not place.exists():
        raise NotATrace(f"{place} does not exist")
    if place.is_file():
        return [place]
    found = sorted(place.rglob("*" + PARQUET))
    found += sorted(path for path in place.rglob("*" + SUFFIX) if path.with_suffix(PARQUET) not in found)
    if not found:
        raise NotATrace(f"{place} holds no trace: no file in it ends in {SUFFIX} or {PARQUET}")
    return found


def load_file(path: Path) -> pa.Table:
    if path.suffix != PARQUET:
        return pa.Table.from_batches(list(_batches(path)), schema=SCHEMA)
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise NotATrace(f"{path} is no whole Parquet file: {reason}") from None
    version = (table.schema.metadata or {}).get(b"greenline.trace.version", b"none").decode(errors="replace")
    if version != str(VERSION):
        raise NotATrace(f"{path} has trace schema version {version}; this Greenline reads version {VERSION}")
    if table.schema.names != SCHEMA.names:
        raise NotATrace(f"{path} does not have the columns of a trace")
    return table.cast(SCHEMA)


def _batches(stream: Path) -> Iterator[pa.RecordBatch]:
    for block in TraceReader(stream):
        yield to_batch(block.run, block.rows)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together until they are worth a row group of Parquet."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(each.num_rows for each in pending) >= ROW_GROUP:
            yield pa.Table.from_batches(pending, schema=SCHEMA)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending, schema=SCHEMA)
