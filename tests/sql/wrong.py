"""Statements that are wrong on purpose, each in its own way; none of them changes anything."""

from __future__ import annotations

from greenline.kernel.statements import Statement
from tests.sql.model import ORDINARY, Schema
from tests.sql.pen import Pen

ALWAYS = (
    *(
        "SELEC 1",
        "SELECT",
        "SELECT (1",
        "SELECT 'unfinished",
        "INSERT INTO",
        "SELECT 1 FROM",
        "CREATE TABLE x",
        "SELECT 1 +",
    ),
    *("SELECT @", "SELECT 0x", "SELECT 1a", "DROP TABLE nowhere", "DROP VIEW nowhere", "DROP INDEX nowhere"),
    *(
        "SELECT * FROM nowhere",
        "SELECT nothing",
        "SELECT no_such(1)",
        "SELECT abs()",
        "SELECT abs(1, 2)",
        "SELECT substr('a')",
    ),
    *(
        "SELECT 1 COLLATE KLINGON",
        "SELECT count(*) WHERE count(*) > 1",
        "SELECT sum(count(1))",
        "SELECT max(1) OVER nope",
    ),
    *(
        "SELECT row_number()",
        "SELECT 1 UNION SELECT 1, 2",
        "SELECT 1 ORDER BY 2",
        "SELECT 1 GROUP BY 5",
        "SELECT 1 HAVING 1",
    ),
    *(
        "SELECT (SELECT 1, 2)",
        "SELECT (1, 2)",
        "SELECT (1, 2) = (1, 2, 3)",
        "VALUES (1), (1, 2)",
        "SELECT 1 IN (SELECT 1, 2)",
    ),
    *(
        "SELECT abs(-9223372036854775807 - 1)",
        "SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)",
    ),
    *(
        "SELECT json('{')",
        "SELECT json_extract('{}', 'k')",
        "SELECT json_object('a')",
        "SELECT '[' -> '$'",
        "SELECT jsonb(x'ff')",
    ),
    *("SELECT 'a' LIKE 'a' ESCAPE 'bc'", "SELECT zeroblob(2000000000)", "SELECT printf('%*d', 2147483647, 1)"),
    *(
        "SELECT RAISE(ABORT, 'x')",
        "ALTER TABLE nowhere RENAME TO x",
        "REINDEX nowhere",
        "ANALYZE nowhere",
        "PRAGMA nothing(1",
    ),
    *("CREATE INDEX i ON nowhere (a)", "CREATE TRIGGER g AFTER INSERT ON nowhere BEGIN SELECT 1; END"),
    *("CREATE TABLE x (a, a)", "CREATE TABLE x (a PRIMARY KEY, b PRIMARY KEY)", "CREATE TABLE x (a) WITHOUT ROWID"),
    *(
        "CREATE TABLE x (a NOPE) STRICT",
        "CREATE TABLE x (a) STRICT",
        "CREATE TABLE x (a AS (a))",
        "CREATE TABLE x (a AS (1))",
    ),
    *(
        "CREATE TABLE x (a CHECK (a > (SELECT 1)))",
        "CREATE TABLE x (a TEXT PRIMARY KEY AUTOINCREMENT)",
        "CREATE TABLE sqlite_x (a)",
    ),
    *(
        "CREATE TABLE x (a DEFAULT (b))",
        "CREATE TABLE x (FOREIGN KEY (a) REFERENCES y(b))",
        "CREATE VIEW v AS SELECT ?",
    ),
    *("CREATE VIRTUAL TABLE x USING fts5(a, tokenize = 'nope')"),
    *(
        "CREATE VIRTUAL TABLE x USING rtree(a)",
        "WITH w AS (SELECT 1) SELECT * FROM w, w",
        "WITH RECURSIVE w AS (SELECT * FROM w) SELECT * FROM w",
    ),
    *(
        "SELECT 1 LIMIT 'x'",
        "SELECT 1 LIMIT NULL OFFSET 'y'",
        "SELECT nth_value(1, 0) OVER ()",
        "SELECT ntile(0) OVER ()",
    ),
    *(
        "SELECT 1 AS a WHERE rowid = 1",
        "DELETE FROM sqlite_schema",
        "UPDATE sqlite_schema SET sql = ''",
        "DROP TABLE sqlite_schema",
    ),
    *("VACUUM", "SELECT ?1, :a, @b, $c", "SELECT likelihood(1, 2)"),
    *("", ";", "-- nothing", "SELECT 1\x00", "/* unfinished", "SELECT 1; -- and no more"),
)


class Wrong:
    def __init__(self, pen: Pen, schema: Schema) -> None:
        self._pen = pen
        self._schema = schema

    def statement(self) -> Statement:
        if self._pen.is_lucky(2):
            return Statement(self._pen.pick(ALWAYS))
        return self._pen.pick((self._about_a_table, self._with_parameters, self._too_much))()

    def _about_a_table(self) -> Statement:
        table = self._pen.pick(self._schema.of_kind(ORDINARY))
        t, column = table.sql, self._pen.pick(table.columns).sql
        many = ", ".join("1" for _ in range(len(table.columns) + 1))
        sql = self._pen.pick(
            (
                f"SELECT nothing FROM {t}",
                f"SELECT a.nothing FROM {t} AS a",
                f"SELECT {column} FROM {t} AS a, {t} AS b",
                f"SELECT {column} FROM {t} WHERE count({column}) > 1",
                f"SELECT sum({column}) OVER (ORDER BY nothing) FROM {t}",
                f"SELECT * FROM {t} ORDER BY {len(table.columns) + 1}",
                f"SELECT * FROM {t} INDEXED BY nowhere",
                f"INSERT INTO {t} VALUES ({many})",
                f"INSERT INTO {t} (nothing) VALUES (1)",
                f"INSERT INTO {t} ({column}, {column}) VALUES (1)",
                f"INSERT INTO {t} ({column}) VALUES (1) ON CONFLICT (nothing) DO NOTHING",
                f"INSERT INTO {t} ({column}) VALUES (1) RETURNING nothing",
                f"UPDATE {t} SET nothing = 1",
                f"UPDATE {t} SET {column} = nothing",
                f"UPDATE {t} SET {column} = count(*)",
                f"UPDATE {t} SET ({column}, id) = (1, 2, 3)",
                f"DELETE FROM {t} WHERE nothing",
                f"CREATE TABLE {t} (a)",
                f"CREATE VIEW {t} AS SELECT 1",
                f"CREATE INDEX {t} ON {t} ({column})",
                f"DROP VIEW {t}",
                f"ALTER TABLE {t} ADD COLUMN {column}",
                f"ALTER TABLE {t} ADD COLUMN u UNIQUE",
                f"ALTER TABLE {t} DROP COLUMN nothing",
                f"ALTER TABLE {t} RENAME COLUMN nothing TO other",
                f"CREATE INDEX x ON {t} ((SELECT 1))",
                f"CREATE INDEX x ON {t} (random())",
                f"CREATE TRIGGER x INSTEAD OF INSERT ON {t} BEGIN SELECT 1; END",
                f"CREATE TRIGGER x AFTER INSERT ON {t} BEGIN SELECT nothing FROM {t}; END",
            )
        )
        return Statement(sql)

    def _with_parameters(self) -> Statement:
        """Too few, too many, of no known type, by a name that is not there."""
        return self._pen.pick(
            (
                Statement("SELECT ?, ?", (1,)),
                Statement("SELECT ?", (1, 2)),
                Statement("SELECT 1", (1,)),
                Statement("SELECT :a", {"b": 1}),
                Statement("SELECT ?", {"a": 1}),
                Statement("SELECT ?", (2**63,)),
                Statement("SELECT ?", ([1],)),
                Statement("SELECT ?", ({"k": 1},)),
                Statement("SELECT CAST(? AS TEXT)", (b"\xff\xfe",)),
                Statement("SELECT ?40000", (1,)),
            )
        )

    def _too_much(self) -> Statement:
        """Over a limit that SQLite itself has."""
        columns = ", ".join(f"c{number}" for number in range(2001))
        return self._pen.pick(
            (
                Statement("SELECT " + "(" * 1100 + "1" + ")" * 1100),
                Statement("SELECT 1" + " UNION ALL SELECT 1" * 500),
                Statement(f"CREATE TABLE x ({columns})"),
                Statement("SELECT " + ", ".join("1" for _ in range(2001))),
                Statement("SELECT 'a' LIKE ?", ("%" * 50001,)),
                Statement("SELECT max(" + ", ".join("1" for _ in range(1001)) + ")"),
            )
        )


def unlike(pen: Pen, parameters: tuple[object, ...]) -> tuple[object, ...]:
    """Parameters that are one too few or one too many."""
    return parameters[1:] if pen.is_lucky(2) else (*parameters, 1)
