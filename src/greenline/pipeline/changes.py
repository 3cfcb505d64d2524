"""Changes: the rows that each position of the order has changed.

A row that was changed is told with all that it holds, packed, in SQLite's own types: integers, reals, texts, blobs and
NULL. They are net changes of a position: what one bundle inserts and deletes again is not told, and what it updates
twice is told once. A change of a table's definition is told as changes of its rows: each has the columns that it had
then.

| column | |
|---|---|
| `table` | its name |
| `key` | which row it is, packed: the rowid, or the primary key of a table that has none |
| `columns` | the names of its columns, in JSON |
| `row` | the values of its columns, packed |
| `_change_type` | `insert`, `update_preimage`, `update_postimage` or `delete` |
| `_commit_version` | the green position |
| `_commit_timestamp` | the latest time that an action there says; none of a base |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa

from greenline.pipeline.capture import Changed
from greenline.pipeline.rows_columns import places

CHANGES = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("columns", pa.string(), nullable=False),
        pa.field("row", pa.binary(), nullable=False),
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)

_encode = msgspec.msgpack.Encoder().encode
_values = msgspec.msgpack.Decoder(list[Any]).decode


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Rows of one table that were all changed in the same way, as they are archived."""

    table: str
    columns: tuple[str, ...]
    kind: str
    keys: list[bytes]
    rows: list[bytes]


def packed(changed: Changed) -> Packed:
    width = changed.width
    keys = [_encode(row[:width]) for row in changed.rows]
    rows = [_encode(row[width:]) for row in changed.rows]
    return Packed(changed.table, changed.columns, changed.kind, keys, rows)


def changes_batch(found: Iterable[tuple[int, Iterable[Packed]]], times: Mapping[int, int]) -> pa.RecordBatch:
    """Of some positions; and the time of each, in microseconds, as far as it is known."""
    blocks = [(position, each) for position, several in found for each in several]
    counts = [len(each.rows) for _, each in blocks]
    many = sum(counts)
    of = places(counts)
    columns = [
        pa.array([each.table for _, each in blocks], pa.string()).take(of),
        pa.array(chain.from_iterable([each.keys for _, each in blocks]), pa.binary(), size=many),
        pa.array([msgspec.json.encode(each.columns).decode() for _, each in blocks], pa.string()).take(of),
        pa.array(chain.from_iterable([each.rows for _, each in blocks]), pa.binary(), size=many),
        pa.array([each.kind for _, each in blocks], pa.string()).take(of),
        pa.array([position for position, _ in blocks], pa.int64()).take(of),
        pa.array([times.get(position) for position, _ in blocks], CHANGES.field("_commit_timestamp").type).take(of),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CHANGES)


def values_of(packed: bytes) -> list[Any]:
    """Of a `key` or a `row`. Text that is no UTF-8 is `msgspec.msgpack.Ext`, with its bytes."""
    return _values(packed)
