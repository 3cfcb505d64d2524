"""Tables: streams into Arrow and Parquet, and a directory of either back into one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from errno import ENOSPC
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.kernel.evidence import Row
from greenline.trace.schema import COLUMNS, SCHEMA, VERSION
from greenline.trace.stream import SUFFIX, NotATrace, TraceReader

PARQUET = ".parquet"
ROW_GROUP = 100_000
_FIELDS = COLUMNS[1:]
_OF_BYTES = b"greenline.trace.of_bytes"
"""In a file that was made of a stream: so long that was when it was read."""
_NEVER_EMPTY = ("run", "process", "incarnation", "local_index", "time", "kind")


Report = Callable[[str], None]
"""Hears of a trace whose end was cut off: it is read all the same."""


def nobody(_: str) -> None:
    """Does not want to hear of it."""


def to_batch(run: str, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [pa.array([run] * len(rows), pa.string())]
    columns += [
        pa.array([getattr(row, name) for row in rows], SCHEMA.field(name).type)  # column by column: no dict per row
        for name in _FIELDS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def to_table(runs: Iterable[tuple[str, Sequence[Row]]]) -> pa.Table:
    return pa.Table.from_batches([to_batch(run, rows) for run, rows in runs], schema=SCHEMA)


def to_parquet(stream: Path, report: Report = nobody, into: Path | None = None) -> tuple[Path, int]:
    """Convert one stream, block by block, so that its size does not matter; returns the file and its rows.

    It stands beside the stream, unless another place is named.
    """
    parquet = into or stream.with_suffix(PARQUET)
    unfinished = parquet.with_suffix(PARQUET + ".part")
    count, size = 0, stream.stat().st_size  # before it is read: what comes meanwhile is not in it
    try:
        with pq.ParquetWriter(unfinished, SCHEMA) as writer:
            writer.add_key_value_metadata({_OF_BYTES.decode(): str(size)})
            for table in _row_groups(_batches(stream, report)):
                writer.write_table(table)
                count += table.num_rows
        unfinished.rename(parquet)
    finally:
        unfinished.unlink(missing_ok=True)
    return parquet, count


def load(place: Path, report: Report = nobody) -> pa.Table:
    """The trace in a file or a directory, from Parquet or, where it was not converted, from its streams."""
    return pa.concat_tables([load_file(path, report) for path in trace_files(place)])


def trace_files(place: Path) -> list[Path]:
    """What to read at this place: every Parquet file, and every stream that has none, or an older one, beside it."""
    if not place.exists():
        raise NotATrace(f"{place} does not exist")
    _check_name(place)
    if place.is_file():
        return [place]
    files = list(_files_below(place))
    streams = {path for path in files if path.suffix == SUFFIX and _is_newer(path)}
    parquets = {path for path in files if path.suffix == PARQUET}
    found = sorted(parquets - {stream.with_suffix(PARQUET) for stream in streams}) + sorted(streams)
    if not found:
        raise NotATrace(f"{place} holds no trace: no file in it ends in {SUFFIX} or {PARQUET}")
    return found


def _files_below(place: Path) -> Iterator[Path]:
    """All that end as traces do, also behind links, each directory once. Whatever is passed over is not judged: so what
    cannot be read is told."""

    def refuse(error: OSError) -> NoReturn:
        raise NotATrace(f"{error.filename} cannot be read: {error.strerror}")

    seen = set()
    for directory, below, names in os.walk(place, onerror=refuse, followlinks=True):
        below.sort()
        if (real := os.path.realpath(directory)) in seen:
            below.clear()
            continue
        seen.add(real)
        for path in (Path(directory, name) for name in names if name.endswith((SUFFIX, PARQUET))):
            if not path.is_file():
                raise NotATrace(f"{path} is no file, or a link to nothing")
            _check_name(path)
            yield path


def _check_name(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise NotATrace(f"{str(path)!r} has a name that is no UTF-8: rename it") from None


def _is_newer(stream: Path) -> bool:
    """Has it grown since it was converted, or never been?"""
    parquet = stream.with_suffix(PARQUET)
    if not parquet.exists():
        return True
    try:
        size = (pq.read_metadata(parquet).metadata or {}).get(_OF_BYTES)
    except (pa.ArrowException, OSError):
        return False  # whoever reads it says what is the matter with it
    is_other = stream.stat().st_mtime_ns > parquet.stat().st_mtime_ns
    return is_other if size is None else is_other or int(size) != stream.stat().st_size


def load_file(path: Path, report: Report = nobody) -> pa.Table:
    if path.suffix != PARQUET:
        return pa.Table.from_batches(list(_batches(path, report)), schema=SCHEMA)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _not_whole(path, error) from None
    _check_schema(path, table.schema)
    if empty := [name for name in _NEVER_EMPTY if table.column(name).null_count]:
        raise NotATrace(f"{path} has rows without {' or '.join(empty)}")
    return _in_our_types(path, table)


def rows_in_parquet(path: Path) -> tuple[int, bool]:
    """How many rows of a trace are in this file, and whether its columns have just our types; by its footer, which is
    all that is read."""
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _not_whole(path, error) from None
    _check_schema(path, schema)
    return int(rows), schema.types == SCHEMA.types


def retyped(path: Path, into: Path) -> None:
    """The same rows in our types: engines take those of one file for those of all."""
    try:
        with pq.ParquetFile(path) as file, pq.ParquetWriter(into, SCHEMA) as writer:
            for batch in file.iter_batches():
                writer.write_table(_in_our_types(path, pa.Table.from_batches([batch])))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno == ENOSPC:
            raise  # of the other one
        raise _not_whole(path, error) from None


def _not_whole(path: Path, error: Exception) -> NotATrace:
    if isinstance(error, PermissionError):
        return NotATrace(f"{path} may not be read by this user")
    return NotATrace(f"{path} is no whole Parquet file: {str(error).splitlines()[0]}")


def _check_schema(path: Path, schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(b"greenline.trace.version", b"none").decode(errors="replace")
    if version != str(VERSION):
        raise NotATrace(f"{path} has trace schema version {version}; this Greenline reads version {VERSION}")
    if schema.names != SCHEMA.names:
        raise NotATrace(f"{path} does not have the columns of a trace")
    for name in schema.names:
        found, ours = schema.field(name).type, SCHEMA.field(name).type
        if not (pa.types.is_null(found) or any(is_kind(found) and is_kind(ours) for is_kind in _KINDS)):
            raise NotATrace(f"{path} has a column of another type: {name} is {found}, and should be {ours}")


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


_KINDS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, _is_text)
"""A wider or narrower one of these is made ours."""


def _in_our_types(path: Path, table: pa.Table) -> pa.Table:
    try:
        return table.cast(SCHEMA)
    except pa.ArrowException as error:
        raise NotATrace(f"{path} has a column of another type: {error}") from None


def _batches(stream: Path, report: Report) -> Iterator[pa.RecordBatch]:
    reader = TraceReader(stream)
    for block in reader:
        try:
            yield to_batch(block.run, block.rows)
        except (OverflowError, pa.ArrowException) as error:
            raise NotATrace(f"{stream} has a number that no trace has: {error}") from None
    if reader.cut_off is not None:
        report(f"{stream} ends in a block that was cut off when its writer was killed; the rest of it is read")


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
