"""Capture: which rows a bundle has changed, exactly, whatever its statements did on the way.

SQLite tells before each change of a row (the preupdate hook). What a row was like is taken from the first time that it
is touched in a bundle, and what it is like from the table itself once the bundle is over: so what was undone in
between, or changed twice, comes to what is left of it. SQLite's own changesets do not tell of rows that have NULL in
their primary key.

The hook does not tell everything: not what a change of the schema does to rows, nor what was there before a transaction
that an action has rolled back; and a row with a generated column, or with text that is no UTF-8, cannot be read in it,
nor one of a table that has other columns by now. Such a bundle is odd: whoever applies it does so again, and looks
before and after (`look`, `between`).

Rows have the columns that are stored; a generated one follows from them. Of virtual tables and of what lies beneath
them nothing is told, nor of Greenline's own tables, which hold what passwords are checked against.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import apsw
import msgspec

from greenline.database.sqlite.rows import folded
from greenline.database.sqlite.tables import OURS
from greenline.pipeline.captured import Column, Key, Row, Table, by_key, keyed, rows_of, stored, tables_of

INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_preimage", "update_postimage"

_QUOTES = str.maketrans(dict.fromkeys("\"'`[]", " "))
_UNREAD = (apsw.Error, ValueError, LookupError)
"""What cannot be read in the hook: a value, or a row that has other columns than its table is known to have."""
_SHAPES = "SELECT name, rootpage, sql FROM sqlite_schema WHERE type = 'table'"
_VERSION = "PRAGMA schema_version"
_encode = msgspec.msgpack.Encoder().encode


class Changed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Rows of one table that were all changed in the same way."""

    table: str
    columns: tuple[str, ...]
    width: int
    """How many values, before those of its columns, say which row it is."""
    kind: str
    rows: list[Row]


class Named(msgspec.Struct, frozen=True, gc=False):
    """Rows that a bundle may have changed."""

    keys: dict[str, set[Key]]
    whole: frozenset[str]
    """Of these tables all."""


class Seen(msgspec.Struct, frozen=True, gc=False):
    """Rows of a table at some moment."""

    table: Table
    rows: dict[Key, Row]


class Capture:
    """On the connection that bundles are applied on, in the transaction that is open."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.version = -1
        """Of the schema, as far as it is known."""
        self._tables: dict[str, Table] = {}
        self._shapes: dict[str, Row] = {}
        """How each table was defined, and where its rows are, when the schema was last looked at."""
        self._touched: dict[str, dict[Key, Row | None]] = {}
        """By this bundle: the row that was there before, or none."""
        self._whole: set[str] = set()
        """Tables that were touched, and whose rows the hook could not tell apart."""
        self._is_unread = False
        self.has_vanished = False
        """The transaction was rolled back while the bundle was applied."""
        self._learn()
        self._on_row = self._hook()
        connection.set_rollback_hook(self._on_rollback)
        self.listen()

    def listen(self) -> None:
        """SQLite is to tell; whatever is prepared meanwhile deletes all rows of a table one by one."""
        self._connection.preupdate_hook(self._on_row)

    def pause(self) -> None:
        self._connection.preupdate_hook(None)

    def inserted(self, table: str, rowids: Sequence[int]) -> None:
        """What the hook would have told of these rows, which were inserted while it paused."""
        if table in self._tables:
            rows = self._touched.setdefault(table, {})
            rows.update(dict.fromkeys(rowids) if rows.keys().isdisjoint(rowids) else dict.fromkeys(rowids) | rows)

    @property
    def tables(self) -> dict[str, tuple[Column, ...]]:
        """Those whose changes are told, as they are now."""
        return {name: self._tables[name].columns for name in sorted(self._tables)}

    def begin(self) -> None:
        """A bundle is about to be applied."""
        self._touched.clear()
        self._whole.clear()
        self._is_unread = self.has_vanished = False

    def changes(self) -> list[Changed] | None:
        """By the bundle that was applied. None: it is odd."""
        if self._is_unread or self.has_vanished or self._schema_version() != self.version:
            return None
        found: list[Changed] = []
        for name in sorted(self._touched):
            found += self._changes_of(self._tables[name], self._touched[name])
        return found

    def named(self, statements: Iterable[str]) -> Named:
        """What the bundle that was applied, by these, may have changed."""
        whole = self._whole | self._of_schema() | _dropped(statements, self._tables)
        return Named({name: set(rows) for name, rows in self._touched.items()}, frozenset(whole))

    def everything(self) -> Named:
        return Named({}, frozenset(self._tables.keys() | self._whole | self._of_schema()))

    def look(self, named: Named) -> dict[str, Seen]:
        """These rows as they are now, of the tables that there are now."""
        if self._schema_version() != self.version:
            self._learn()
        seen = {}
        for name in sorted(named.keys.keys() | named.whole):
            table = self._tables.get(name)
            if table is not None:
                rows = rows_of(self._connection, table, None if name in named.whole else named.keys[name])
                seen[name] = Seen(table, by_key(table, rows))
        return seen

    # What SQLite tells.

    def _hook(self) -> Callable[[apsw.PreUpdate], None]:
        tables, touched = self._tables, self._touched

        def on_row(update: apsw.PreUpdate) -> None:
            """It must not fail: what runs would fail with it."""
            name = update.table_name
            rows = touched.get(name)
            if rows is None:
                if name not in tables:
                    return  # not told; or new, so that the schema is
                rows = touched[name] = {}
            table = tables[name]
            if table.rowid is None:
                self._on_keyed_row(table, rows, update)
                return
            rowid = update.rowid
            if update.op == "INSERT":
                if rowid not in rows:
                    rows[rowid] = None
                return
            if rowid not in rows:
                try:
                    rows[rowid] = (rowid, *stored(table, update.old or ()))
                except _UNREAD:
                    rows[rowid] = None
                    self._is_unread = True
            if update.rowid_new not in rows:
                rows[update.rowid_new] = None

        return on_row

    def _on_keyed_row(self, table: Table, rows: dict[Key, Row | None], update: apsw.PreUpdate) -> None:
        try:
            if table.has_keys:
                if (old := update.old) is not None:
                    rows.setdefault(*keyed(table, stored(table, old)))
                if (new := update.new) is not None:
                    rows.setdefault(keyed(table, stored(table, new))[0], None)
                return
        except _UNREAD:
            pass
        self._whole.add(table.name)
        self._is_unread = True

    def _on_rollback(self) -> None:
        self.has_vanished = True

    # What the tables hold.

    def _changes_of(self, table: Table, touched: dict[Key, Row | None]) -> list[Changed]:
        rows = rows_of(self._connection, table, touched)
        if table.rowid and len(rows) == len(touched) and not any(touched.values()):
            return [_changed(table, INSERT, rows)]  # as most bundles do: nobody looks at single rows
        before = {key: row for key, row in touched.items() if row is not None}
        return _between(Seen(table, before), Seen(table, by_key(table, rows)))

    # The schema.

    def _schema_version(self) -> int:
        return int(self._connection.execute(_VERSION, prepare_flags=OURS).get)

    def _learn(self) -> None:
        """In place: the hook knows these."""
        self.version = self._schema_version()
        self._shapes = self._read_shapes()
        self._tables.clear()
        self._tables.update(tables_of(self._connection))

    def _of_schema(self) -> set[str]:
        """Tables that are there since, or not any more, or not as they were."""
        shapes = self._read_shapes()
        return {name for name in shapes | self._shapes if shapes.get(name) != self._shapes.get(name)}

    def _read_shapes(self) -> dict[str, Row]:
        return {str(row[0]): row for row in self._connection.execute(_SHAPES, prepare_flags=OURS)}


def _dropped(statements: Iterable[str], tables: Iterable[str]) -> set[str]:
    """Those that may have been dropped: made again as they were, on the pages that had become free, they look the same.
    A table is named in what drops it, or gives it another name before, however it is quoted; and to name it too often
    only takes time."""
    said = " ; ".join(each for each in map(_plainly, statements) if "drop" in each or "rename" in each)
    if "drop" not in said:
        return set()
    return {name for name in tables if re.search(rf"(?<!\w){re.escape(_plainly(name))}(?!\w)", f" {said} ")}


def _plainly(text: str) -> str:
    """Without quotes, and in one case."""
    return folded(" ".join(text.translate(_QUOTES).split()))


def between(before: dict[str, Seen], after: dict[str, Seen]) -> list[Changed]:
    """What was changed from one look at some rows to the next."""
    found: list[Changed] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None and _kind(old.table) == _kind(new.table):
            found += _between(old, new)
            continue
        # It is new, or gone; or a table of another kind, whose rows have other keys.
        found += [] if old is None else _between(old, Seen(old.table, {}))
        found += [] if new is None else _between(Seen(new.table, {}), new)
    return found


def _kind(table: Table) -> tuple[bool, tuple[str, ...]]:
    return table.rowid is None, table.keys


def _between(before: Seen, after: Seen) -> list[Changed]:
    old, new = before.rows, after.rows
    is_alike = before.table.columns == after.table.columns  # also their types: whoever types rows begins anew
    both = [key for key in old.keys() & new.keys() if not (is_alike and _encode(old[key]) == _encode(new[key]))]
    both.sort()
    parts = (
        _changed(before.table, DELETE, [old[key] for key in sorted(old.keys() - new.keys())]),
        _changed(before.table, BEFORE, [old[key] for key in both]),
        _changed(after.table, AFTER, [new[key] for key in both]),
        _changed(after.table, INSERT, [new[key] for key in sorted(new.keys() - old.keys())]),
    )
    return [part for part in parts if part.rows]


def _changed(table: Table, kind: str, rows: list[Row]) -> Changed:
    return Changed(table.name, table.names, table.width, kind, rows)
