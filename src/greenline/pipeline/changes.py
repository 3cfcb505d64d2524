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
| `_commit_timestamp` | what the last action there that says the time says; none of a base |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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


LARGEST = 256 << 20
"""Of rows that become one batch: in Arrow, a column of one has 2 GiB at most."""
_OF_A_ROW = 100
"""What Python needs beside its bytes."""


class Packed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Rows of one table that were all changed in the same way, as they are archived."""

    table: str
    columns: tuple[str, ...]
    kind: str
    keys: list[bytes]
    rows: list[bytes]

    @property
    def size(self) -> int:
        """In memory, about."""
        return sum(map(len, self.rows)) + _OF_A_ROW * len(self.rows)

    def cut(self) -> Iterator[Packed]:
        """Into parts of no more than so many bytes, or of one row."""
        first = size = 0
        for place, row in enumerate(self.rows):
            if first < place and size + len(row) > LARGEST:
                yield self._part(first, place)
                first, size = place, 0
            size += len(row)
        yield self._part(first, len(self.rows))

    def _part(self, first: int, last: int) -> Packed:
        return Packed(self.table, self.columns, self.kind, self.keys[first:last], self.rows[first:last])


def packed(changed: Changed) -> Packed:
    width = changed.width
    keys = [_encode(row[:width]) for row in changed.rows]
    rows = [_encode(row[width:]) for row in changed.rows]
    return Packed(changed.table, changed.columns, changed.kind, keys, rows)


def changes_table(found: Iterable[tuple[int, Iterable[Packed]]], times: Mapping[int, int]) -> pa.Table:
    """Of some positions; and the time of each, in microseconds, as far as it is known."""
    together: list[list[tuple[int, Packed]]] = [[]]
    size = 0
    for position, several in found:
        for each in several:
            for part in each.cut() if each.size > LARGEST else (each,):
                if size + part.size > LARGEST:
                    together.append([])
                    size = 0
                together[-1].append((position, part))
                size += part.size
    return pa.Table.from_batches([_batch(blocks, times) for blocks in together])


def _batch(blocks: Sequence[tuple[int, Packed]], times: Mapping[int, int]) -> pa.RecordBatch:
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
