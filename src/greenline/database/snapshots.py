"""Snapshots: the replicated state as chunks, each some rows of one table in the order of their keys, and back.

A chunk is known by its digest, and who has one of that digest need not be sent it. So chunks should stay equal where
the rows are: a chunk ends after a row whose key says so, or when it is full, and not after so many rows from
the beginning, where one row more would shift all that follow. Where the state stands is said in the first chunk only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import msgspec

from greenline.kernel.actions import digest_of
from greenline.kernel.codec import Garbled

FULL = 4
"""A chunk is full at so many times the usual number of rows."""

Row = tuple[object, ...]
"""Of integers, texts and bytes, as the database has them."""


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first chunk: where the state stands, and what the digests of all others come to."""

    position: int
    outcomes: bytes
    contents: bytes


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Snapshot:
    position: int
    chunks: dict[bytes, bytes]
    """By their digests, in order: no two are equal, as no two have the same key in them."""


def take(db: sqlite3.Connection, tables: dict[str, int], stands: tuple[int, bytes], chunk_rows: int) -> Snapshot:
    position, outcomes = stands
    parts = [data for table, key in tables.items() for data in _parts(db, table, key, chunk_rows)]
    chunks = {digest_of(data): data for data in parts}
    header = _ENCODER.encode(Header(position, outcomes, digest_of(b"".join(chunks))))
    return Snapshot(position, {digest_of(header): header, **chunks})


def opened(chunks: dict[bytes, bytes]) -> tuple[Header, list[Part]]:
    """What these chunks say, if all are there that belong together."""
    try:
        first, *others = chunks.values()
        header, parts = _HEADERS.decode(first), [_PARTS.decode(data) for data in others]
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise Garbled(f"these are no chunks: {error}") from None
    _, *digests = chunks
    if header.contents != digest_of(b"".join(digests)):
        raise Garbled("these chunks do not belong together")
    return header, parts


def load(db: sqlite3.Connection, tables: dict[str, int], parts: list[Part]) -> None:
    """Replace what the tables hold. Who calls it undoes it if it raises."""
    for table in tables:
        db.execute(f"DELETE FROM {table}")
    for part in parts:
        if part.table not in tables:
            raise Garbled(f"there is no table {part.table}")
        try:
            for row in part.rows:
                db.execute(f"INSERT INTO {part.table} VALUES ({', '.join('?' * len(row))})", row)
        except (sqlite3.Error, OverflowError) as error:
            raise Garbled(f"these rows are not of the table {part.table}: {error}") from None


def _parts(db: sqlite3.Connection, table: str, key: int, chunk_rows: int) -> Iterator[bytes]:
    rows: list[Row] = []
    for row in db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(str(1 + n) for n in range(key))}"):
        rows.append(row)
        if crc32(_ENCODER.encode(row[:key])) % chunk_rows == 0 or len(rows) == FULL * chunk_rows:
            yield _ENCODER.encode(Part(table, tuple(rows)))
            rows = []
    if rows:
        yield _ENCODER.encode(Part(table, tuple(rows)))


_ENCODER = msgspec.msgpack.Encoder()
_HEADERS = msgspec.msgpack.Decoder(Header)
_PARTS = msgspec.msgpack.Decoder(Part)
