"""What SQLite does and Greenline refuses, on purpose, and why. Everything else is the same.

Each entry is an action that plain SQLite does, in a transaction of its own unless it says otherwise, and that every
replica refuses, always with the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.statements import Statement


@dataclass(frozen=True, slots=True)
class Difference:
    what: str
    why: str
    examples: tuple[str, ...]
    """Each an action of one statement, after `SETTING`."""


SETTING = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b)",
    "CREATE TABLE n (id INTEGER PRIMARY KEY AUTOINCREMENT)",
    "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "CREATE TRIGGER g BEFORE INSERT ON t WHEN new.a = 'never' BEGIN SELECT RAISE(ROLLBACK, 'never so'); END",
)

ON_PURPOSE = (
    Difference(
        "Transactions and savepoints",
        "The statements of an action are a transaction already; it ends where the action ends.",
        ("SAVEPOINT s", "COMMIT", "END", "ROLLBACK"),
    ),
    Difference(
        "Other databases",
        "An action reaches the replicated database and nothing else.",
        ("ATTACH ':memory:' AS other", "DETACH other"),
    ),
    Difference(
        "Temporary tables, views and triggers",
        "They belong to a connection, and the next action may be applied by another one.",
        (
            "CREATE TEMP TABLE x (a)",
            "CREATE TEMP VIEW x AS SELECT 1",
            "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
            "CREATE TABLE temp.x (a)",
        ),
    ),
    Difference(
        "Most pragmas",
        "They are about one file or one connection. Those that tell of the schema work, and user_version.",
        ("PRAGMA journal_mode", "PRAGMA foreign_keys = OFF", "PRAGMA page_count", "PRAGMA defer_foreign_keys = ON"),
    ),
    Difference(
        "ANALYZE",
        "Statistics change how queries are carried out, and so the order of rows that nobody ordered.",
        ("ANALYZE", "ANALYZE t"),
    ),
    Difference(
        "EXPLAIN in an action",
        "How a statement is carried out is for a query to ask, at one replica.",
        ("EXPLAIN SELECT * FROM t", "EXPLAIN QUERY PLAN SELECT * FROM t"),
    ),
    Difference(
        "Functions that tell where they run",
        "Replicas may be of different builds while a cluster is renewed.",
        ("SELECT sqlite_version()", "SELECT sqlite_source_id()", "SELECT sqlite_compileoption_used('X')"),
    ),
    Difference(
        "Virtual tables other than fts5, rtree, geopoly and JSON's",
        "Others keep what they know outside of the replicated database, or show its pages.",
        (
            "CREATE VIRTUAL TABLE x USING fts4(a)",
            "CREATE VIRTUAL TABLE x USING no_such_module",
            "CREATE VIRTUAL TABLE x USING dbstat",
        ),
    ),
    Difference(
        "Tables named greenline_...",
        "They are Greenline's own. They may be read, not written.",
        ("CREATE TABLE greenline_x (a)", "CREATE VIEW greenline_x AS SELECT 1", "ALTER TABLE t RENAME TO greenline_x"),
    ),
    Difference(
        "Writing the tables inside of a virtual table",
        "They are the virtual table's own; what is wrong in them looks like a damaged disk.",
        ("DELETE FROM f_data", "UPDATE f_content SET c0 = 'x'"),
    ),
    Difference(
        "The greatest rowid, 9223372036854775807",
        "Behind it SQLite draws rowids by chance, or says that the disk is full.",
        ("INSERT INTO t (id) VALUES (9223372036854775807)", "INSERT INTO n VALUES (9223372036854775807)"),
    ),
    Difference(
        "Patterns of LIKE and GLOB with more than 500 bytes",
        "To match one is a single step, which nobody can stop, and may take minutes.",
        (f"SELECT 'x' LIKE '{'y' * 501}'", f"UPDATE t SET b = 1 WHERE b GLOB '{'y' * 501}'"),
    ),
    Difference(
        "Several statements in one text",
        "An action has its statements one by one, each with its own parameters and result.",
        ("SELECT 1; SELECT 2", "INSERT INTO t (a) VALUES (7); DELETE FROM t"),
    ),
)

ENDS_THE_TRANSACTION = (
    ("INSERT OR ROLLBACK INTO t (a) VALUES ('one')",),
    ("INSERT INTO t (a) VALUES ('three')", "INSERT OR ROLLBACK INTO t (a) VALUES ('one')"),
    ("UPDATE OR ROLLBACK t SET a = 'one'",),
    ("INSERT INTO t (a) VALUES ('never')",),
)
"""These fail in SQLite too, and undo all. In Greenline they undo their own action, like every failure."""


def statements(*sql: str) -> tuple[Statement, ...]:
    return tuple(map(Statement, sql))
