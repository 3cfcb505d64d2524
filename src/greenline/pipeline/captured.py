"""Captured tables: how they are made, and their rows, read so that every value survives.

Before its values a row has those that say which row it is: the rowid; where there is none, the primary key; and where a
table has taken all the names of its rowid, all that the row holds, and the how many-th such it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apsw
import msgspec

from greenline.database.sqlite.tables import OURS, PREFIX

NO_UTF8 = 1
"""In a row that is packed: the extension for text that is none, with its bytes."""

Row = tuple[Any, ...]
"""The values that say which row it is, and then all that it holds."""
Key = Any
"""The rowid; where there is none, the values that say which row it is, packed: 1 and 1.0 are two keys."""

_TABLES = f"""
SELECT name, wr FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
    AND lower(name) NOT LIKE '{PREFIX.replace("_", "@_")}%' ESCAPE '@'
"""
_COLUMNS = "SELECT cid, name, type, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid"
_ROWIDS = ("rowid", "_rowid_", "oid")
_encode = msgspec.msgpack.Encoder().encode


class Column(msgspec.Struct, frozen=True, array_like=True, gc=False):
    name: str
    declared: str
    """Its type, as the table's definition has it."""
    key: int
    """Which column of the primary key it is, from 1; or 0."""


class Table(msgspec.Struct, frozen=True, gc=False):
    name: str
    columns: tuple[Column, ...]
    """Those that are stored."""
    places: tuple[int, ...]
    """Where they stand among all that the table has."""
    rowid: str | None
    """What the rowid is called here; None if there is none, or all of its names are taken."""
    keys: tuple[str, ...]
    """The primary key, if there is no rowid."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def has_keys(self) -> bool:
        """Its rows can be asked for one by one."""
        return self.rowid is not None or bool(self.keys)

    @property
    def width(self) -> int:
        """How many values say which row it is."""
        return 1 if self.rowid else len(self.keys) or len(self.columns) + 1


def tables_of(connection: apsw.Connection) -> dict[str, Table]:
    """Those that clients have made, but for virtual ones and what lies beneath them."""
    found = connection.execute(_TABLES, prepare_flags=OURS).fetchall()
    return {str(name): _table(connection, str(name), is_without_rowid=bool(wr)) for name, wr in found}


def rows_of(connection: apsw.Connection, table: Table, keys: Iterable[Key] | None = None) -> list[Row]:
    """Those with these keys, as far as they are there; or all."""
    try:
        rows = _selected(connection, table, keys, is_careful=False)
    except UnicodeDecodeError:
        rows = [_careful_row(row) for row in _selected(connection, table, keys, is_careful=True)]
    return rows if table.has_keys else list(_numbered(rows))


def every_row(connection: apsw.Connection, table: Table) -> Iterator[Row]:
    """All, one after the other: a table may be larger than memory."""
    rows = map(_careful_row, connection.execute(_select(table, is_careful=True), can_cache=False))
    return rows if table.has_keys else _numbered(rows)


def by_key(table: Table, rows: list[Row]) -> dict[Key, Row]:
    if table.rowid:
        return {row[0]: row for row in rows}
    width = table.width
    return {_encode(row[:width]): row for row in rows}


def stored(table: Table, values: Row) -> Row:
    """Of all values of a row, those that are stored."""
    return values if len(values) == len(table.places) else tuple(values[place] for place in table.places)


def keyed(table: Table, values: Row) -> tuple[Key, Row]:
    """By its primary key: a row of a table that has no rowid."""
    held = dict(zip(table.names, values, strict=True))
    key = tuple(held[name] for name in table.keys)
    return _encode(key), (*key, *values)


def _table(connection: apsw.Connection, name: str, *, is_without_rowid: bool) -> Table:
    columns: list[Any] = connection.execute(_COLUMNS, (name,), prepare_flags=OURS).fetchall()
    kept = [(cid, Column(column, declared, pk)) for cid, column, declared, pk, hidden in columns if not hidden]
    taken = {column.lower() for _, column, _, _, _ in columns}
    rowid = None if is_without_rowid else next((each for each in _ROWIDS if each not in taken), None)
    keys = sorted((pk, column) for _, column, _, pk, _ in columns if pk and is_without_rowid)
    places, stored_columns = tuple(cid for cid, _ in kept), tuple(column for _, column in kept)
    return Table(name, stored_columns, places, rowid, tuple(column for _, column in keys))


def _selected(connection: apsw.Connection, table: Table, keys: Iterable[Key] | None, *, is_careful: bool) -> list[Row]:
    select = _select(table, is_careful=is_careful)
    if keys is None or not table.has_keys:
        return connection.execute(select, can_cache=False).fetchall()
    if table.rowid:
        where = f"{table.rowid} BETWEEN ? AND ?"
        return list(connection.executemany(f"{select} WHERE {where}", _ranges(sorted(keys)), prepare_flags=OURS))
    where = " AND ".join(f"{_quoted(key)} = ?" for key in table.keys)
    bindings = map(msgspec.msgpack.decode, sorted(keys))
    return list(connection.executemany(f"{select} WHERE {where}", bindings, prepare_flags=OURS))


def _select(table: Table, *, is_careful: bool) -> str:
    """All rows, each with its key before it. Careful: each value with its type before it, and text as bytes."""
    key = [table.rowid] if table.rowid else list(map(_quoted, table.keys))
    wanted = [*key, *map(_quoted, table.names)]
    if is_careful:
        wanted = [
            f"typeof({each}), CASE typeof({each}) WHEN 'text' THEN CAST({each} AS BLOB) ELSE {each} END"
            for each in wanted
        ]
    return f"SELECT {', '.join(wanted)} FROM {_quoted(table.name)}"


def _careful_row(row: Row) -> Row:
    return tuple(_text(value) if kind == "text" else value for kind, value in zip(row[::2], row[1::2], strict=True))


def _text(data: bytes) -> str | msgspec.msgpack.Ext:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return msgspec.msgpack.Ext(NO_UTF8, data)


def _ranges(rowids: list[int]) -> Iterator[tuple[int, int]]:
    """Those that follow each other, together."""
    first = last = rowids[0]
    for rowid in rowids[1:]:
        if rowid != last + 1:
            yield first, last
            first = rowid
        last = rowid
    yield first, last


def _numbered(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows that are told apart only by what they hold: the first such, the second such."""
    counted: Counter[bytes] = Counter()
    for row in rows:
        held = _encode(row)
        counted[held] += 1
        yield (*row, counted[held], *row)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
