"""Queries of every form. Whatever is cut by a LIMIT is ordered by all its columns first."""

from __future__ import annotations

from tests.sql.expressions import Expressions, Scope, scope_of
from tests.sql.model import FTS, Schema, Table
from tests.sql.pen import DOCUMENTS, Pen, quoted

JOINS = ("JOIN", "LEFT JOIN", "CROSS JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN")
COMPOUNDS = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT")
PRAGMAS = ("table_info", "table_xinfo", "index_list", "foreign_key_list", "foreign_key_check")


class Queries:
    def __init__(self, pen: Pen, schema: Schema) -> None:
        self._pen = pen
        self._schema = schema

    def expressions(self, scope: Scope, depth: int = 1) -> Expressions:
        """With subqueries in them, of which each may have others, down to some depth."""
        return Expressions(self._pen, scope, self._subquery if depth and self._schema.readable else None)

    def _subquery(self, has_one_row: bool) -> str:
        table = self._pen.pick(self._schema.readable)
        inner = Expressions(self._pen, scope_of(table, "q"))
        if has_one_row:
            what = self._pen.pick(("min", "max", "count", "total"))
            return f"SELECT {what}({inner.column()}) FROM {table.sql} AS q WHERE {inner.condition(1)}"
        return f"SELECT {inner.column()} FROM {table.sql} AS q WHERE {inner.condition(1)}"

    def table(self) -> Table:
        return self._pen.pick(self._schema.readable)

    def source(self) -> tuple[str, Scope]:
        """What stands after FROM."""
        first = self.table()
        scope = scope_of(first, "a")
        if not self._pen.is_lucky(3):
            return f"{first.sql} AS a", scope
        second = self.table()
        both = [*scope, *scope_of(second, "b")]
        match self._pen.below(4):
            case 0:
                return f"{first.sql} AS a, {second.sql} AS b", both
            case 1:
                inner = ", ".join(f"{column.sql}" for column in second.columns)
                return f"{first.sql} AS a JOIN (SELECT {inner} FROM {second.sql} LIMIT 5) AS b", both
            case _:
                on = f"{self._pen.pick(scope)[0]} = {self._pen.pick(both[len(scope) :])[0]}"
                return f"{first.sql} AS a {self._pen.pick(JOINS)} {second.sql} AS b ON {on}", both

    def cut(self, width: int) -> str:
        """An order of all that is told, and a limit."""
        collation = self._pen.pick(("", "", "", " COLLATE NOCASE", " DESC", " DESC NULLS LAST", " COLLATE RTRIM"))
        order = ", ".join(f"{number}{collation if number == 1 else ''}" for number in range(1, width + 1))
        offset = f" OFFSET {self._pen.below(4)}" if self._pen.is_lucky(4) else ""
        return f" ORDER BY {order} LIMIT {self._pen.between(1, 20)}{offset}"

    # The forms.

    def simple(self) -> str:
        source, scope = self.source()
        write = self.expressions(scope)
        columns = [write.anything() for _ in range(self._pen.between(1, 4))]
        named = [
            f"{each} AS {quoted(f'c {number}')}" if self._pen.is_lucky(4) else each
            for number, each in enumerate(columns)
        ]
        distinct = "DISTINCT " if self._pen.is_lucky(6) else ""
        return f"SELECT {distinct}{', '.join(named)} FROM {source} WHERE {write.condition()}{self.cut(len(columns))}"

    def star(self) -> str:
        table = self.table()
        return f"SELECT * FROM {table.sql} WHERE {self.expressions(scope_of(table)).condition()}"

    def alone(self) -> str:
        write = self.expressions(())
        return "SELECT " + ", ".join(write.anything(3) for _ in range(self._pen.between(1, 5)))

    def aggregates(self) -> str:
        source, scope = self.source()
        write = self.expressions(scope)
        columns = [write.aggregate() for _ in range(self._pen.between(1, 3))]
        if self._pen.is_lucky(2):
            return f"SELECT {', '.join(columns)} FROM {source} WHERE {write.condition()}"
        group = write.column()
        having = (
            f" HAVING {self._pen.pick(('count(*) > 1', f'min({write.column()}) IS NOT NULL'))}"
            if self._pen.is_lucky(3)
            else ""
        )
        return (
            f"SELECT {group}, {', '.join(columns)} FROM {source} GROUP BY {group}{having}{self.cut(len(columns) + 1)}"
        )

    def compound(self) -> str:
        width = self._pen.between(1, 3)
        parts = [self._part(width)]
        for _ in range(self._pen.between(1, 3)):
            parts += [self._pen.pick(COMPOUNDS), self._part(width)]
        return " ".join(parts) + self.cut(width)

    def _part(self, width: int) -> str:
        if self._pen.is_lucky(5):
            return f"SELECT * FROM (VALUES ({', '.join(self._pen.value() for _ in range(width))}))"
        table = self.table()
        write = self.expressions(scope_of(table))
        return (
            f"SELECT {', '.join(write.anything(1) for _ in range(width))} FROM {table.sql} WHERE {write.condition(1)}"
        )

    def windows(self) -> str:
        table = self.table()
        write = self.expressions(scope_of(table, "a"), 0)
        columns = [write.column(), *(write.window() for _ in range(self._pen.between(1, 3)))]
        return f"SELECT {', '.join(columns)} FROM {table.sql} AS a{self.cut(len(columns))}"

    def common(self) -> str:
        """A common table expression, or two that build on each other."""
        first = self.table()
        inner = self.expressions(scope_of(first))
        kept = self._pen.pick(("", " MATERIALIZED", " NOT MATERIALIZED"))
        with_ = f"WITH w(x, y) AS{kept} (SELECT {inner.anything(1)}, {inner.number(1)} FROM {first.sql} LIMIT 20)"
        if self._pen.is_lucky(3):
            counted = "v AS (SELECT x, count(*) AS z FROM w GROUP BY x)"
            return f"{with_}, {counted} SELECT w.y, v.z FROM w JOIN v USING (x){self.cut(2)}"
        outer = self.expressions([("x", "ANY"), ("y", "INTEGER")])
        return f"{with_} SELECT x, {outer.number()} FROM w WHERE {outer.condition()}{self.cut(2)}"

    def recursive(self) -> str:
        limit = self._pen.between(1, 30)
        return "WITH RECURSIVE " + self._pen.pick(
            (
                f"n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {limit}) SELECT i, i * i FROM n",
                f"f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f LIMIT {limit}) SELECT a FROM f",
                f"s(t) AS (SELECT 'a' UNION ALL SELECT t || 'b' FROM s WHERE length(t) < {limit}) SELECT t FROM s",
                f"g(i) AS (SELECT {self._pen.value('INTEGER')} UNION SELECT (i * 7 + 3) % 11 FROM g) SELECT i FROM g",
            )
        )

    def documents(self) -> str:
        document = self._pen.mark(self._pen.pick(DOCUMENTS))
        each = self._pen.pick(("json_each", "json_tree"))
        write = self.expressions([("j.key", "ANY"), ("j.value", "ANY"), ("j.type", "TEXT"), ("j.atom", "ANY")])
        return f"SELECT j.key, j.value, j.type, j.fullkey FROM {each}({document}) AS j WHERE {write.condition(1)}"

    def search(self) -> str:
        """Full text, if there is a table for it."""
        tables = self._schema.of_kind(FTS)
        if not tables:
            return self.documents()
        table = self._pen.pick(tables)
        word = self._pen.mark(self._pen.pick(("abc", "a*", "abc OR b", "naïve", '"abc"', "a NOT b", "NEAR(a b)", "^a")))
        column = self._pen.pick(
            (f"highlight({table.sql}, 0, '<', '>')", f"snippet({table.sql}, 0, '', '', '~', 4)", "rowid")
        )
        return f"SELECT rowid, {column} FROM {table.sql} WHERE {table.sql} MATCH {word} ORDER BY rowid"

    def values(self) -> str:
        width = self._pen.between(1, 3)
        rows = (f"({', '.join(self._pen.value() for _ in range(width))})" for _ in range(self._pen.between(1, 4)))
        return "VALUES " + ", ".join(rows)

    def about(self) -> str:
        """What the schema says of itself."""
        name = self._pen.pick([table.name for table in self._schema.readable])
        return self._pen.pick(
            (
                f"PRAGMA {self._pen.pick(PRAGMAS)}({quoted(name)})",
                "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'greenline%' ORDER BY type, name",
                "PRAGMA user_version",
            )
        )
