"""Rows: plain inserts of one text, many in one statement.

`INSERT INTO t (a, b) VALUES (?, ?)` sixty-four times is one statement with sixty-four rows: SQLite is entered once, and
the lock of the interpreter passes between threads once, not a few times a row. That is for tables in which nothing can
tell the difference: no trigger, foreign key, check, conflict clause, generated column or computed default, so that a
row comes to one change, and its rowid is the one that was given or the next. Whatever else there is, whatever fails
and whatever is not sure is left to be done one by one.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from greenline.database.sqlite.determinism import LAST_ROWID
from greenline.database.sqlite.tables import OURS
from greenline.kernel.statements import Parameters, Value

SIZES = (64, 16)
"""Rows of a statement: few different ones, each of which is prepared once."""
_NAME = r'(?:[a-z_]\w*|"[^"]+")'
_INSERT = re.compile(
    rf"\s*INSERT\s+INTO\s+({_NAME})\s*(?:\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\))?\s*VALUES\s*(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*;?\s*",
    re.IGNORECASE | re.ASCII,
)
_CONSTANT = re.compile(r"[+-]?[0-9.]+|'[^']*'|null", re.IGNORECASE)
_TABLE = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'table' AND lower(name) = lower(?1)
    AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?1))
    AND NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list(?1))
    AND (SELECT type = 'table' AND NOT wr FROM pragma_table_list(?1) WHERE schema = 'main')
"""
_TELLING = re.compile(r"\b(check|conflict)\b", re.IGNORECASE)
_COLUMNS = """
SELECT lower(name), lower(type), dflt_value, pk, hidden FROM pragma_table_xinfo(?1)
"""
_ALIASED = "SELECT NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')"
"""A primary key that has no index of its own is the rowid."""
_ROWIDS = {"rowid", "_rowid_", "oid"}


class Text(msgspec.Struct, frozen=True, gc=False):
    """A plain insert, by its text alone."""

    table: str
    columns: tuple[str, ...]
    """In the order of the parameters; none: all that the table has."""
    head: str
    row: str
    width: int


class Plan(msgspec.Struct, frozen=True, gc=False):
    """How its rows are inserted together, as the schema is now."""

    text: Text
    table: str
    """Its name, as it was made."""
    key: int | None
    """Which parameter is the rowid; None: it is the next one."""
    last: str
    """The query for the last rowid."""

    def sql(self, rows: int) -> str:
        return self.text.head + ",".join([self.text.row] * rows)


def text_of(sql: str) -> Text | None:
    found = _INSERT.fullmatch(sql)
    if found is None:
        return None
    table, columns, row = found.groups()
    names = tuple(_bare(name) for name in re.findall(_NAME, columns, re.IGNORECASE | re.ASCII)) if columns else ()
    return Text(_bare(table), names, sql[: found.start(3)], row, row.count("?"))


def plan_of(text: Text, connection: apsw.Connection) -> Plan | None:
    """None: something could tell that they were inserted together."""
    found = connection.execute(_TABLE, (text.table,), prepare_flags=OURS).fetchone()
    if found is None or _TELLING.search(found[1]):
        return None
    columns: list[Any] = connection.execute(_COLUMNS, (found[0],), prepare_flags=OURS).fetchall()
    names = [name for name, _, _, _, _ in columns]
    given = [folded(name) for name in text.columns] or names
    if not len(given) == len(set(given)) == text.width or not set(given) <= set(names) or _ROWIDS & set(names):
        return None
    for name, _, default, _, hidden in columns:
        if hidden or not (name in given or default is None or _CONSTANT.fullmatch(default)):
            return None
    ((is_aliased,),) = connection.execute(_ALIASED, (found[0],), prepare_flags=OURS)
    keys = [name for name, _, _, pk, _ in columns if pk and is_aliased]
    key = given.index(keys[0]) if keys and keys[0] in given else None
    quoted = found[0].replace('"', '""')
    return Plan(text, found[0], key, f'SELECT max(_rowid_) FROM "{quoted}"')


def insert(connection: apsw.Connection, plan: Plan, rows: Sequence[Parameters], flags: int) -> list[int] | None:
    """The rowid of each. None: who knows what they have come to; undo it, and do them one by one."""
    width, key, count = plan.text.width, plan.key, len(rows)
    if {len(row) for row in rows} != {width}:
        return None
    values = [value for row in rows for value in row]
    ids: list[Value] = [] if key is None else values[key::width]
    if key is None:
        ((last,),) = connection.execute(plan.last, prepare_flags=OURS)
        if last is not None and last >= LAST_ROWID - count:
            return None
    elif {type(each) for each in ids} != {int} or LAST_ROWID in ids:
        return None
    connection.execute(plan.sql(count), values, prepare_flags=flags)
    if connection.changes() != count:
        return None
    last = connection.last_insert_rowid()
    if key is None and last == LAST_ROWID:
        return None  # AUTOINCREMENT may count from where no row is
    return ids or list(range(last - count + 1, last + 1))


def _bare(name: str) -> str:
    return name.strip('"')


def folded(name: str) -> str:
    """As SQLite compares names: only the letters of ASCII have two cases."""
    return name.translate(_LOWER)


_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
