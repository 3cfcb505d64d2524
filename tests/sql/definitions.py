"""CREATE, ALTER and DROP: tables with every kind of constraint, views, indexes, triggers, virtual tables."""

from __future__ import annotations

from tests.sql.changes import Changes
from tests.sql.expressions import Expressions, scope_of
from tests.sql.model import ORDINARY, VIEW, Schema, Table
from tests.sql.pen import Pen, quoted
from tests.sql.queries import Queries

TYPES = ("INTEGER", "INT", "TEXT", "VARCHAR(20)", "REAL", "DOUBLE", "NUMERIC", "DECIMAL(10,2)", "BLOB", "", "BOOLEAN")
STRICT_TYPES = ("INTEGER", "INT", "TEXT", "REAL", "BLOB", "ANY")
ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION")
NAMES = ("a", "b", "c", "d", "e", "f", "odd name", "sélect", "order", 'q"uote', "Mixed", "g")
COLLATIONS = ("NOCASE", "RTRIM", "BINARY")
MOST = {"tables": 7, "views": 4, "indexes": 8, "triggers": 5}


class Definitions:
    def __init__(self, pen: Pen, schema: Schema, queries: Queries, changes: Changes) -> None:
        self._pen = pen
        self._schema = schema
        self._queries = queries
        self._changes = changes

    def _new_name(self, letter: str) -> str:
        odd = " odd" if self._pen.is_lucky(10) else ""
        return quoted(f"{letter}{self._pen.below(40)}{odd}")

    # Tables.

    def table(self) -> str:
        if len(self._schema.tables) >= MOST["tables"]:
            return self.drop_table()
        is_strict = self._pen.is_lucky(3)
        names = self._pen.some(NAMES, 1, 5)
        key, constraints, without_rowid = self._key()
        columns = [key, *(self._column(name, is_strict) for name in names)]
        if self._pen.is_lucky(3):
            columns.append(self._generated(names, is_strict))
        if self._pen.is_lucky(4):
            constraints.append(f"UNIQUE ({', '.join(quoted(name) for name in names[:2])})")
        if self._pen.is_lucky(6):
            write = Expressions(self._pen, [(quoted(name), "ANY") for name in names])
            constraints.append(f"CHECK ({write.column()} IS NOT {self._pen.value()} OR {write.condition(1)})")
        options = [*(["STRICT"] if is_strict else []), *(["WITHOUT ROWID"] if without_rowid else [])]
        maybe = "IF NOT EXISTS " if self._pen.is_lucky(8) else ""
        return f"CREATE TABLE {maybe}{self._new_name('t')} ({', '.join(columns + constraints)}) {', '.join(options)}"

    def _key(self) -> tuple[str, list[str], bool]:
        """The first column, what stands behind the columns, and whether there is no rowid."""
        match self._pen.below(6):
            case 0:
                return "id INTEGER PRIMARY KEY AUTOINCREMENT", [], False
            case 1:
                return "id INTEGER NOT NULL PRIMARY KEY", [], True
            case 2:
                return "id TEXT NOT NULL COLLATE NOCASE", ["PRIMARY KEY (id)"], self._pen.is_lucky(2)
            case 3:
                return "id INT", [], False
            case _:
                return "id INTEGER PRIMARY KEY", [], False

    def _column(self, name: str, is_strict: bool) -> str:
        type_ = self._pen.pick(STRICT_TYPES if is_strict else TYPES)
        parents = [table for table in self._schema.of_kind(ORDINARY) if ("id",) in table.uniques]
        if parents and self._pen.is_lucky(4):
            return self._child(name, self._pen.pick(parents))
        parts = [quoted(name), type_]
        if self._pen.is_lucky(5):
            parts.append(
                f"DEFAULT {self._pen.pick(('7', '-1.5', chr(39) + 'none' + chr(39), 'NULL', '(1 + 2)', 'TRUE'))}"
            )
        if self._pen.is_lucky(10):
            parts.append("NOT NULL" + self._pen.pick(("", "", " ON CONFLICT IGNORE", " ON CONFLICT REPLACE")))
        if self._pen.is_lucky(10):
            parts.append("UNIQUE" + self._pen.pick(("", "", " ON CONFLICT FAIL", " ON CONFLICT REPLACE")))
        if self._pen.is_lucky(5):
            parts.append(f"COLLATE {self._pen.pick(COLLATIONS)}")
        if self._pen.is_lucky(10):
            parts.append(f"CONSTRAINT {quoted('fits ' + name)} CHECK ({quoted(name)} IS NOT {self._pen.value()})")
        return " ".join(parts)

    def _child(self, name: str, parent: Table) -> str:
        clauses = [f"{quoted(name)} INTEGER REFERENCES {parent.sql}(id)"]
        clauses += [f"ON {what} {self._pen.pick(ACTIONS)}" for what in self._pen.some(("DELETE", "UPDATE"), 0, 2)]
        if self._pen.is_lucky(2):
            clauses.append("DEFERRABLE INITIALLY DEFERRED")
        return " ".join(clauses)

    def _generated(self, names: list[str], is_strict: bool) -> str:
        write = Expressions(self._pen, [(quoted(name), "ANY") for name in names])
        type_ = self._pen.pick(("TEXT", "ANY") if is_strict else ("TEXT", "", "NUMERIC"))
        return f"gen {type_} GENERATED ALWAYS AS ({write.text(1)}) {self._pen.pick(('STORED', 'VIRTUAL'))}"

    def table_selected(self) -> str:
        if len(self._schema.tables) >= MOST["tables"]:
            return self.drop_table()
        source = self._queries.table()
        columns = ", ".join(column.sql for column in source.columns[:3])
        return f"CREATE TABLE {self._new_name('t')} AS SELECT {columns} FROM {source.sql} ORDER BY 1 LIMIT 5"

    def virtual(self) -> str:
        if len(self._schema.tables) >= MOST["tables"]:
            return self.drop_table()
        if self._pen.is_lucky(3):
            return f"CREATE VIRTUAL TABLE {self._new_name('r')} USING rtree(id, low, high)"
        options = self._pen.pick(
            ("", ", tokenize = 'porter'", ", prefix = '2 3'", ', tokenize = "unicode61 remove_diacritics 2"')
        )
        return f"CREATE VIRTUAL TABLE {self._new_name('s')} USING fts5(a, b{options})"

    def alter(self) -> str:
        table = self._pen.pick(self._schema.of_kind(ORDINARY))
        column = self._pen.pick(table.columns)
        new = self._pen.pick(NAMES)
        type_ = self._pen.pick(STRICT_TYPES if table.is_strict else TYPES)
        extra = self._pen.pick(
            ("", "DEFAULT 5", "NOT NULL DEFAULT 'x'", "COLLATE NOCASE", "AS (length('x'))", "CHECK (id IS NOT 3)")
        )
        return f"ALTER TABLE {table.sql} " + self._pen.pick(
            (
                f"RENAME TO {self._new_name('t')}",
                f"RENAME COLUMN {column.sql} TO {quoted(new)}",
                f"ADD COLUMN {quoted(new)} {type_} {extra}",
                f"ADD COLUMN {quoted(new)} {type_}",
                f"DROP COLUMN {table.columns[-1].sql}",
            )
        )

    def drop_table(self) -> str:
        maybe = "IF EXISTS " if self._pen.is_lucky(5) else ""
        return f"DROP TABLE {maybe}{self._pen.pick(self._schema.tables).sql}"

    # Views, indexes, triggers.

    def view(self) -> str:
        if len(self._schema.views) >= MOST["views"]:
            return f"DROP VIEW {self._pen.pick(self._schema.views).sql}"
        table = self._pen.pick(self._schema.tables)
        write = self._queries.expressions(scope_of(table), 0)
        body = self._pen.pick(
            (
                f"SELECT {write.column()} AS x, {write.anything(1)} AS y FROM {table.sql} WHERE {write.condition(1)}",
                f"SELECT {write.column()} AS x, count(*) AS n FROM {table.sql} GROUP BY 1",
                f"SELECT * FROM {table.sql}",
            )
        )
        return f"CREATE VIEW {self._new_name('v')} AS {body}"

    def index(self) -> str:
        if len(self._schema.indexes) >= MOST["indexes"]:
            return f"DROP INDEX {quoted(self._pen.pick(self._schema.indexes))}"
        table = self._pen.pick(self._schema.of_kind(ORDINARY))
        write = Expressions(self._pen, scope_of(table))
        parts = [
            f"{column.sql} {self._pen.pick(('', 'DESC', 'COLLATE NOCASE'))}"
            for column in self._pen.some(table.columns, 1, 2)
        ]
        if self._pen.is_lucky(4):
            parts.append(f"length({write.column()})")
        unique = "UNIQUE " if self._pen.is_lucky(5) else ""
        where = f" WHERE {write.column()} IS NOT NULL" if self._pen.is_lucky(4) else ""
        return f"CREATE {unique}INDEX {self._new_name('i')} ON {table.sql} ({', '.join(parts)}){where}"

    def trigger(self) -> str:
        if len(self._schema.triggers) >= MOST["triggers"]:
            return f"DROP TRIGGER {quoted(self._pen.pick(self._schema.triggers))}"
        table = self._pen.pick([*self._schema.of_kind(ORDINARY), *self._schema.views, *self._schema.views])
        event = self._pen.pick(("INSERT", "UPDATE", "DELETE"))
        when = "INSTEAD OF" if table.kind == VIEW else self._pen.pick(("BEFORE", "AFTER"))
        row = {"INSERT": "new", "DELETE": "old"}.get(event) or self._pen.pick(("new", "old"))
        seen = scope_of(table, row)
        of = f" OF {self._pen.pick(table.columns).sql}" if event == "UPDATE" and self._pen.is_lucky(3) else ""
        condition = f" WHEN {Expressions(self._pen, seen).condition(1)}" if self._pen.is_lucky(2) else ""
        body = "; ".join(self._triggered(seen) for _ in range(self._pen.between(1, 2)))
        head = f"CREATE TRIGGER {self._new_name('g')} {when} {event}{of} ON {table.sql}"
        return f"{head} FOR EACH ROW{condition} BEGIN {body}; END"

    def _triggered(self, seen: list[tuple[str, str]]) -> str:
        """A statement in a trigger's body."""
        write = Expressions(self._pen, seen)
        if self._pen.is_lucky(3):
            how = self._pen.pick(("RAISE(IGNORE)", "RAISE(ABORT, 'not this')", "RAISE(FAIL, 'only so far: ' || 7)"))
            return f"SELECT CASE WHEN {write.column()} = {self._pen.value('INTEGER')} THEN {how} END"
        table = self._changes.table()
        # A key gets no odd number: behind the greatest rowid lies what differs on purpose.
        column = self._pen.pick([column for column in table.writable if not column.is_key] or table.writable)
        return self._pen.pick(
            (
                f"INSERT OR IGNORE INTO {table.sql} ({column.sql}) VALUES ({write.column(column.type)})",
                f"UPDATE OR IGNORE {table.sql} SET {column.sql} = {write.column(column.type)}"
                f" WHERE {column.sql} = {write.column()}",
                f"DELETE FROM {table.sql} WHERE {column.sql} = {write.column()}",
            )
        )

    def upkeep(self) -> str:
        table = self._pen.pick(self._schema.of_kind(ORDINARY))
        return self._pen.pick(("REINDEX", f"REINDEX {table.sql}", f"PRAGMA user_version = {self._pen.below(99)}"))
