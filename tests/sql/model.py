"""What the generator knows of the schema: read from SQLite itself after each change, so that it is never wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from tests.sql.pen import quoted
from tests.sql.plain import rows

ORDINARY, VIEW, FTS, RTREE = "table", "view", "fts5", "rtree"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    """What values fit: INTEGER, REAL, TEXT, BLOB or ANY."""
    is_generated: bool = False
    is_key: bool = False
    parent: str = ""
    """The table that it refers to."""

    @property
    def sql(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    kind: str
    columns: tuple[Column, ...]
    uniques: tuple[tuple[str, ...], ...] = ()
    """What an upsert may name."""
    has_rowid: bool = True
    is_strict: bool = False

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def writable(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.is_generated)


@dataclass(slots=True)
class Schema:
    tables: list[Table] = field(default_factory=list)
    views: list[Table] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Table]:
        return [table for table in self.tables if table.kind == kind]

    @property
    def readable(self) -> list[Table]:
        return self.tables + self.views


_KEYS = 'SELECT "from", "table" FROM pragma_foreign_key_list(?)'
_TABLES = """
SELECT l.name, l.type, l.wr, l.strict, lower(coalesce(s.sql, ''))
FROM pragma_table_list l JOIN sqlite_schema s ON s.name = l.name
WHERE l.schema = 'main' AND l.type != 'shadow' AND l.name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY l.name
"""


def schema_of(db: apsw.Connection) -> Schema:
    schema = Schema()
    for name, type_, without_rowid, is_strict, sql in rows(db, _TABLES):
        kind = FTS if "using fts5" in sql else RTREE if "using rtree" in sql else VIEW if type_ == "view" else ORDINARY
        try:
            table = Table(name, kind, _columns(db, name), _uniques(db, name), not without_rowid, bool(is_strict))
        except apsw.SQLError:
            continue  # a view of something that is gone
        (schema.views if kind == VIEW else schema.tables).append(table)
    for type_, name in rows(db, "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"):
        if type_ == "index":
            schema.indexes.append(name)
        elif type_ == "trigger":
            schema.triggers.append(name)
    return schema


def _columns(db: apsw.Connection, table: str) -> tuple[Column, ...]:
    parents = {each[0]: each[1] for each in rows(db, _KEYS, (table,))}
    found = rows(db, "SELECT name, upper(type), hidden, pk FROM pragma_table_xinfo(?)", (table,))
    return tuple(
        Column(name, _fitting(type_), hidden in (2, 3), pk > 0, parents.get(name, ""))
        for name, type_, hidden, pk in found
        if hidden != 1
    )


def _fitting(declared: str) -> str:
    for mark, type_ in (("INT", "INTEGER"), ("CHAR", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "BLOB"), ("REAL", "REAL")):
        if mark in declared:
            return type_
    return "REAL" if "DOUB" in declared or "FLOA" in declared else "ANY"


def _uniques(db: apsw.Connection, table: str) -> tuple[tuple[str, ...], ...]:
    keys = [
        tuple(column for (column,) in rows(db, "SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,)))
        for (index,) in rows(db, 'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial', (table,))
    ]
    rowid = tuple(
        name for (name,) in rows(db, "SELECT name FROM pragma_table_info(?) WHERE pk AND type = 'INTEGER'", (table,))
    )
    return tuple(key for key in (*keys, rowid) if key and None not in key)
