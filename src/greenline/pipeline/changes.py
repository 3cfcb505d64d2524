"""Changes: the rows that each position of the order has changed, and what tables come to because of them.

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

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from greenline.pipeline.archive import CHANGES as KIND
from greenline.pipeline.archive import Archive
from greenline.pipeline.capture import BEFORE, DELETE, Changed
from greenline.pipeline.reading import Discarded
from greenline.pipeline.rows import places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
_names = msgspec.json.Decoder(list[str]).decode


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


def asof(archive: Archive, table: str, position: int) -> Iterator[dict[str, Any]]:
    """The rows of a table after a position, in no particular order; read here, without Spark.

    Raises `Discarded` if the archive does not reach so far, or begins later.
    """
    check_reach(archive, position)
    rows: dict[bytes, tuple[str, bytes]] = {}
    wanted = ["key", "columns", "row", "_change_type", "_commit_version"]
    for path in archive.files(KIND, last=position):
        filters = [("table", "=", table), ("_commit_version", "<=", position)]
        found = pq.read_table(path, columns=wanted, filters=filters)
        for key, columns, row, kind, _ in zip(*(column.to_pylist() for column in found.columns), strict=True):
            if kind in (DELETE, BEFORE):
                rows.pop(key, None)
            else:
                rows[key] = columns, row
    for columns, row in rows.values():
        yield dict(zip(_names(columns), values_of(row), strict=True))


def check_reach(archive: Archive, position: int) -> None:
    if not archive.base <= position <= archive.last:
        raise Discarded(
            f"{archive} knows the tables after the positions {archive.base} to {archive.last}, not after {position}: "
            "let its follower go on, or ask for another"
        )


def state(changes: DataFrame, position: int, key: str = "key") -> DataFrame:
    """The rows that a table had after a position, from all changes of that table; `key` is the column that says which
    row it is."""
    from pyspark.sql import functions as f  # here: who has no Spark does without this function

    there = f.col("_change_type") != DELETE
    # What is deleted and inserted again by one bundle, under the same key, is there.
    latest = f.max_by(f.struct("*"), f.struct("_commit_version", there)).alias("_latest")
    known = changes.where((f.col("_commit_version") <= position) & (f.col("_change_type") != BEFORE))
    return known.groupBy(f.col(key).alias("_of")).agg(latest).select("_latest.*").where(there).drop("_change_type")


def history(changes: DataFrame, key: str = "key") -> DataFrame:
    """Each row that a table ever had, with the position `_from` which it was there, and the one `_until` which; none:
    it is still there."""
    from pyspark.sql import Window  # as above
    from pyspark.sql import functions as f

    there = f.col("_change_type") != DELETE
    following = Window.partitionBy(key).orderBy("_commit_version", there)
    known = changes.where(f.col("_change_type") != BEFORE)
    told = known.withColumn("_until", f.lead("_commit_version").over(following))
    return told.where(there).withColumnRenamed("_commit_version", "_from").drop("_change_type")
