"""INSERT, UPDATE and DELETE in every form."""

from __future__ import annotations

from tests.sql.expressions import fitting, scope_of
from tests.sql.model import FTS, ORDINARY, RTREE, Column, Schema, Table
from tests.sql.pen import Pen, quoted
from tests.sql.queries import Queries

OTHERWISE = ("", "", "", "", " OR ABORT", " OR FAIL", " OR IGNORE", " OR REPLACE")


class Changes:
    def __init__(self, pen: Pen, schema: Schema, queries: Queries) -> None:
        self._pen = pen
        self._schema = schema
        self._queries = queries

    def table(self) -> Table:
        return self._pen.pick(self._schema.of_kind(ORDINARY))

    # INSERT.

    def insert(self) -> str:
        return self.insert_into(self.table())

    def insert_into(self, table: Table, otherwise: str = "") -> str:
        columns = self._chosen(table)
        rows = [self._row(columns) for _ in range(self._pen.between(1, 3) if self._pen.is_lucky(3) else 1)]
        return f"INSERT{otherwise} INTO {table.sql} ({_names(columns)}) VALUES {', '.join(rows)}"

    def insert_otherwise(self) -> str:
        return self.insert_into(self.table(), self._pen.pick(OTHERWISE))

    def replace(self) -> str:
        table = self.table()
        columns = table.writable
        return f"REPLACE INTO {table.sql} ({_names(columns)}) VALUES {self._row(columns)}"

    def insert_default(self) -> str:
        return f"INSERT INTO {self.table().sql} DEFAULT VALUES"

    def insert_selected(self) -> str:
        table, source = self.table(), self._queries.table()
        columns = self._chosen(table)
        write = self._queries.expressions(scope_of(source))
        selected = [
            fitting(self._pen, column) if column.is_key or column.parent else _cast(write.column(column.type), column)
            for column in columns
        ]
        width = ", ".join(str(number) for number in range(1, len(columns) + 1))
        return (
            f"INSERT{self._pen.pick(OTHERWISE)} INTO {table.sql} ({_names(columns)}) SELECT {', '.join(selected)}"
            f" FROM {source.sql} WHERE {write.condition(1)} ORDER BY {width} LIMIT {self._pen.between(1, 4)}"
        )

    def upsert(self) -> str:
        able = [table for table in self._schema.of_kind(ORDINARY) if table.uniques]
        if not able:
            return self.insert()
        table = self._pen.pick(able)
        columns = table.writable
        insert = f"INSERT INTO {table.sql} ({_names(columns)}) VALUES {self._row(columns)} ON CONFLICT"
        target = f"({', '.join(quoted(name) for name in self._pen.pick(table.uniques))})"
        if self._pen.is_lucky(4):
            return f"{insert} {self._pen.pick(('', target))} DO NOTHING"
        column = self._pen.pick(columns)
        new = self._pen.pick((f"excluded.{column.sql}", f"{table.sql}.{column.sql}", fitting(self._pen, column)))
        where = f" WHERE {table.sql}.{column.sql} IS NOT excluded.{column.sql}" if self._pen.is_lucky(3) else ""
        return f"{insert} {target} DO UPDATE SET {column.sql} = {new}{where}"

    def child_first(self) -> tuple[str, ...]:
        """A row that refers to one which comes only then, or never: right where the key is looked at late."""
        able = [
            (table, column) for table in self._schema.of_kind(ORDINARY) for column in table.columns if column.parent
        ]
        parents = {table.name: table for table in self._schema.of_kind(ORDINARY)}
        if not able:
            return (self.insert(),)
        child, reference = self._pen.pick(able)
        key = self._pen.between(41, 90)
        first = self._keyed(child, reference.name, key)
        parent = parents.get(reference.parent)
        return (first,) if parent is None or self._pen.is_lucky(3) else (first, self._keyed(parent, "id", key))

    def _keyed(self, table: Table, key: str, value: int) -> str:
        row = (str(value) if column.name == key else fitting(self._pen, column) for column in table.writable)
        return f"INSERT INTO {table.sql} ({_names(table.writable)}) VALUES ({', '.join(row)})"

    # UPDATE.

    def update(self) -> str:
        table = self.table()
        write = self._queries.expressions(scope_of(table))
        sets = ", ".join(f"{column.sql} = {self._new(table, column)}" for column in self._targets(table))
        return f"UPDATE{self._pen.pick(OTHERWISE)} {table.sql} SET {sets} WHERE {write.condition()}"

    def update_from(self) -> str:
        table, other = self.table(), self._queries.table()
        (target,) = self._targets(table)[:1]
        source = self._pen.pick(other.columns)
        key = self._pen.pick(table.columns)
        new = _cast(f"o.{source.sql}", target)
        return (
            f"UPDATE {table.sql} SET {target.sql} = {new} FROM"
            f" (SELECT * FROM {other.sql} ORDER BY 1 LIMIT 1) AS o"
            f" WHERE {table.sql}.{key.sql} {self._pen.pick('<>=')} o.{source.sql}"
        )

    def update_pair(self) -> str:
        """A row value on the left."""
        table = self.table()
        columns = self._targets(table)
        values = ", ".join(self._new(table, column) for column in columns)
        return f"UPDATE {table.sql} SET ({_names(columns)}) = ({values}) WHERE {self._one(table)}"

    def _targets(self, table: Table) -> list[Column]:
        plain = [column for column in table.writable if not column.is_key] or list(table.writable)
        return self._pen.some(table.writable if self._pen.is_lucky(8) else plain, 1, 2)

    def _new(self, table: Table, column: Column) -> str:
        if column.is_key or column.parent or self._pen.is_lucky(2):
            return fitting(self._pen, column)
        write = self._queries.expressions(scope_of(table))
        match column.type:
            case "INTEGER":
                return f"CAST({write.number()} AS INTEGER)"
            case "TEXT":
                return write.text()
            case "REAL":
                return f"CAST({write.number()} AS REAL)"
        return write.column(column.type)

    def _one(self, table: Table) -> str:
        return f"{self._pen.pick(table.columns).sql} = {self._pen.value(self._pen.pick(table.columns).type)}"

    # DELETE.

    def delete(self) -> str:
        table = self.table()
        return f"DELETE FROM {table.sql} WHERE {self._queries.expressions(scope_of(table)).condition()}"

    def delete_most(self, table: Table) -> str:
        """It has grown large."""
        column = table.columns[0].sql
        return (
            f"DELETE FROM {table.sql} WHERE {column} IN (SELECT {column} FROM {table.sql} ORDER BY 1 LIMIT -1 OFFSET 5)"
        )

    # With more around it.

    def returning(self) -> str:
        table = self.table()
        write = self._queries.expressions(scope_of(table), 0)
        told = self._pen.pick(("*", f"{write.column()}, {write.anything()}", f"{write.column()} AS told"))
        columns = self._chosen(table)
        changed = self._pen.pick(
            (
                f"INSERT INTO {table.sql} ({_names(columns)}) VALUES {self._row(columns)}",
                f"REPLACE INTO {table.sql} ({_names(columns)}) VALUES {self._row(columns)}",
                f"UPDATE {table.sql} SET {columns[-1].sql} = {self._new(table, columns[-1])} WHERE {write.condition()}",
                f"DELETE FROM {table.sql} WHERE {write.condition()}",
            )
        )
        return f"{changed} RETURNING {told}"

    def with_common(self) -> str:
        table, other = self.table(), self._queries.table()
        column, source = self._pen.pick(table.columns), self._pen.pick(other.columns)
        with_ = f"WITH w(x) AS (SELECT {source.sql} FROM {other.sql} WHERE {source.sql} IS NOT NULL ORDER BY 1 LIMIT 3)"
        columns = self._chosen(table)
        return self._pen.pick(
            (
                f"{with_} DELETE FROM {table.sql} WHERE {column.sql} IN w",
                f"{with_} INSERT INTO {table.sql} ({_names(columns)}) SELECT {self._row(columns)[1:-1]} FROM w LIMIT 1",
                f"{with_} UPDATE {table.sql} SET {columns[-1].sql} = {fitting(self._pen, columns[-1])} WHERE"
                f" {column.sql} = (SELECT min(x) FROM w)",
            )
        )

    def view(self) -> str:
        """Through an INSTEAD OF trigger, if the view has one."""
        if not self._schema.views:
            return self.insert()
        view = self._pen.pick(self._schema.views)
        column = self._pen.pick(view.columns)
        return self._pen.pick(
            (
                f"INSERT INTO {view.sql} ({column.sql}) VALUES ({fitting(self._pen, column)})",
                f"UPDATE {view.sql} SET {column.sql} = {fitting(self._pen, column)} WHERE {column.sql} IS NOT NULL",
                f"DELETE FROM {view.sql} WHERE {column.sql} = {self._pen.value(column.type)}",
            )
        )

    def virtual(self) -> str:
        """Full text and boxes."""
        tables = [*self._schema.of_kind(FTS), *self._schema.of_kind(RTREE)]
        if not tables:
            return self.upsert()
        table = self._pen.pick(tables)
        rowid = self._pen.between(1, 12)
        if table.kind == RTREE:
            low = self._pen.between(-5, 10)
            row = f"{rowid}, {low}, {low + self._pen.between(-1, 9)}"
            return self._pen.pick(
                (f"INSERT OR REPLACE INTO {table.sql} VALUES ({row})", f"DELETE FROM {table.sql} WHERE id = {rowid}")
            )
        column = self._pen.pick(table.columns).sql
        return self._pen.pick(
            (
                f"INSERT INTO {table.sql} (rowid, {column}) VALUES ({rowid}, {self._pen.value('TEXT')})",
                f"INSERT INTO {table.sql} ({column}) VALUES ({self._pen.value('TEXT')})",
                f"UPDATE {table.sql} SET {column} = {self._pen.value('TEXT')} WHERE rowid = {rowid}",
                f"DELETE FROM {table.sql} WHERE rowid = {rowid}",
                f"INSERT INTO {table.sql} ({table.sql}) VALUES ('optimize')",
            )
        )

    def _chosen(self, table: Table) -> list[Column]:
        """All that can be written, or some of it."""
        if self._pen.is_lucky(4):
            return self._pen.some(table.writable, 1, len(table.writable))
        return list(table.writable)

    def _row(self, columns: list[Column] | tuple[Column, ...]) -> str:
        return f"({', '.join(fitting(self._pen, column) for column in columns)})"


def _cast(expression: str, column: Column) -> str:
    return expression if column.type == "ANY" else f"CAST({expression} AS {column.type})"


def _names(columns: list[Column] | tuple[Column, ...]) -> str:
    return ", ".join(column.sql for column in columns)
