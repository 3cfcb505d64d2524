"""Content: what a state comes to, whatever its pages look like. Equal exactly if the states are.

Everything that a later action could see or stumble over: the schema, all rows of all tables with their rowids, the
header's two numbers, where it stands. Not where its snapshots came from. SQLite itself writes the rows down, many to a
step, so that the digest of a large table does not keep Python's lock: text and blobs in hexadecimal, as they may
hold anything, numbers as SQL would say them, which is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import apsw
import msgspec

from greenline.database.sqlite.tables import stands
from greenline.kernel.actions import DIGEST_BYTES

ROWS_A_STEP = 500
BYTES_A_STEP = 4 * 1024 * 1024
LEAST, GREATEST = -(2**63), 2**63 - 1
"""Of all rowids."""
_ROWIDS = ("rowid", "_rowid_", "oid")
_encode = msgspec.msgpack.Encoder().encode


class Table(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    """Those that are stored."""
    keys: tuple[str, ...]
    """The primary key, if there is no rowid."""
    rowid: str | None
    """What the rowid is called here; None if there is none, or all of its names are taken."""


def digest(connection: apsw.Connection) -> tuple[int, bytes]:
    """The position of what is committed, and what that comes to. The connection has no hooks and no transaction."""
    connection.execute("BEGIN")
    try:
        at = stands(connection)
        whole = blake2b(_encode((at.position, at.outcomes, at.horizon)), digest_size=DIGEST_BYTES)
        whole.update(_encode((connection.pragma("user_version"), connection.pragma("application_id"))))
        whole.update(_encode(_schema(connection)))
        for table in _tables(connection):
            whole.update(_encode((table.name, table.columns)))
            for lines in _lines(connection, table):
                whole.update(lines)
        return at.position, whole.digest()
    finally:
        connection.execute("ROLLBACK")


def _schema(connection: apsw.Connection) -> list[tuple[object, ...]]:
    return list(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"))


def _tables(connection: apsw.Connection) -> list[Table]:
    """All that have rows of their own: also what lies beneath a virtual table, and what SQLite counts for itself."""
    found = connection.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')"
        " AND name NOT IN ('sqlite_schema', 'greenline_meta') ORDER BY name"
    ).fetchall()
    return [_table(connection, str(name), is_without_rowid=bool(wr)) for name, wr in found]


def _table(connection: apsw.Connection, name: str, is_without_rowid: bool) -> Table:
    found = connection.execute("SELECT name, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid", (name,))
    columns = [(str(column), int(place), bool(hidden)) for column, place, hidden in found]
    stored = tuple(column for column, _, is_hidden in columns if not is_hidden)
    taken = {column.lower() for column, _, _ in columns}
    rowid = None if is_without_rowid else next((each for each in _ROWIDS if each not in taken), None)
    keys = [column for column, place, _ in sorted(columns, key=lambda column: column[1]) if place]
    return Table(name, stored, tuple(keys) if is_without_rowid else (), rowid)


def _lines(connection: apsw.Connection, table: Table) -> Iterator[bytes]:
    return _by_rowid(connection, table) if table.rowid else _row_by_row(connection, table)


def _by_rowid(connection: apsw.Connection, table: Table) -> Iterator[bytes]:
    """Some hundred rows a step, fewer where they are long."""
    rowid = table.rowid
    chosen = f"FROM {_quoted(table.name)} WHERE {rowid} >= ? ORDER BY {rowid} LIMIT ?"
    weigh = f"SELECT max(id), sum(size) FROM (SELECT {rowid} AS id, {_size(table)} AS size {chosen})"
    write = (
        "SELECT CAST(group_concat(line, char(10) ORDER BY id) || char(10) AS BLOB)"
        f" FROM (SELECT {rowid} AS id, {rowid} || ' ' || {_line(table)} AS line {chosen})"
    )
    start, rows = LEAST, ROWS_A_STEP
    while start <= GREATEST:
        ((last, size),) = connection.execute(weigh, (start, rows))
        if last is None:
            return
        if size > BYTES_A_STEP and rows > 1:
            rows //= 2
            continue
        ((lines,),) = connection.execute(write, (start, rows))
        yield lines
        start, rows = last + 1, min(ROWS_A_STEP, rows * 2)


def _row_by_row(connection: apsw.Connection, table: Table) -> Iterator[bytes]:
    order = f" ORDER BY {', '.join(map(_quoted, table.keys))}" if table.keys else ""
    for (line,) in connection.execute(
        f"SELECT CAST({_line(table)} || char(10) AS BLOB) FROM {_quoted(table.name)}{order}"
    ):
        yield line


def _line(table: Table) -> str:
    """An expression that writes a row down."""
    values = [
        f"CASE typeof({column}) WHEN 'text' THEN 't' || hex({column}) WHEN 'blob' THEN 'b' || hex({column})"
        f" ELSE quote({column}) END"
        for column in map(_quoted, table.columns)
    ]
    parts = [f"concat_ws(' ', {', '.join(some)})" for some in _few(values)]
    return f"concat_ws(' ', {', '.join(parts)})"


def _size(table: Table) -> str:
    """An expression for how long that will be, roughly; it reads no blob."""
    sizes = [f"ifnull(octet_length({_quoted(column)}), 0)" for column in table.columns]
    return " + ".join(f"({' + '.join(some)})" for some in _few(sizes))


def _few(parts: list[str]) -> list[list[str]]:
    """A table may have more columns than an expression may be deep, or a function may have arguments."""
    return [parts[n : n + 100] for n in range(0, len(parts), 100)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
