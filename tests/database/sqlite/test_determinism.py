"""What SQL would take from the place where it runs, it takes from the action."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.kernel.actions import Action
from greenline.kernel.statements import Failure, Statement, encode
from tests.database.sqlite.asking import NOW, Database, work


def test_it_is_when_the_action_says(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        _, _, told = database.done(
            "CREATE TABLE t (a, at TEXT DEFAULT CURRENT_TIMESTAMP, day TEXT DEFAULT (date('now')))",
            "INSERT INTO t (a) VALUES (1)",
            "SELECT at, day, unixepoch(), strftime('%f', 'now'), time('now', 'localtime'), julianday() FROM t",
        )

    assert told.rows == (
        ("2023-11-14 22:13:20", "2023-11-14", NOW // 1_000_000, "20.123", "22:13:20", pytest.approx(2460263.42593)),
    )


def test_each_action_of_a_run_has_its_own_time_and_chance(tmp_path: Path) -> None:
    insert = "INSERT INTO t VALUES (?, unixepoch(), random(), hex(randomblob(4)))"

    def asked(number: int) -> Action:
        return Action("s", number, encode(work(Statement(insert, (number,)), now=number * 1_000_000, seed=number)))

    tables = []
    for place, sizes in (("p", (9,)), ("q", (1,) * 9)):
        with Database(tmp_path / place) as database:
            database.decide(Action("c", 1, encode(work("CREATE TABLE t (a, at, chance, blob)"))))
            number = 1
            for size in sizes:
                database.decide(*(asked(number + more) for more in range(size)))
                number += size
            tables.append(database.rows("SELECT * FROM t"))

    assert tables[0] == tables[1]
    assert [row[:2] for row in tables[0]] == [(number, number) for number in range(1, 10)]
    assert len({row[2] for row in tables[0]}) == len({row[3] for row in tables[0]}) == 9


def test_chance_differs_from_call_to_call_and_from_seed_to_seed(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        (told,) = database.done("SELECT random(), random(), length(randomblob(100)), length(randomblob(-1))")
        (other,) = database.decide(database.next(body=work("SELECT random()", seed=8)))

    first, second, many, least = told.rows[0]
    assert first != second
    assert (many, least) == (100, 1)
    assert isinstance(other, tuple)
    assert other[0].rows[0][0] != first


def test_counters_tell_of_the_same_action_only(tmp_path: Path) -> None:
    counters = "SELECT changes(), total_changes(), last_insert_rowid()"
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", "INSERT INTO t (a) VALUES (1), (2), (3)")

        assert database.done(counters)[0].rows == ((0, 0, 0),)
        results = database.done("INSERT INTO t (a) VALUES (4)", "DELETE FROM t WHERE id < 3", counters)

    assert results[2].rows == ((2, 3, 4),)


def test_a_trigger_that_counts_changes_counts_those_of_its_action(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done(
            "CREATE TABLE t (a)",
            "CREATE TABLE seen (n)",
            "CREATE TRIGGER w AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (total_changes()); END",
        )
        database.decide(*(database.next(Statement("INSERT INTO t VALUES (?)", (n,))) for n in range(3)))

        assert len({n for (n,) in database.rows("SELECT n FROM seen")}) == 1


@pytest.mark.parametrize(
    ("sql", "because"),
    [
        ("ATTACH 'other.db' AS other", "one database"),
        ("BEGIN", "a transaction already"),
        ("COMMIT", "a transaction already"),
        ("SAVEPOINT x", "a transaction already"),
        ("PRAGMA journal_mode = DELETE", "about one replica"),
        ("PRAGMA defer_foreign_keys = ON", "about one replica"),
        ("PRAGMA data_version", "about one replica"),
        ("SELECT * FROM pragma_data_version", "about one replica"),
        ("SELECT sqlite_version()", "shows where it runs"),
        ("CREATE TEMP TABLE t (a)", "known to one replica only"),
        ("CREATE TABLE temp.t (a)", "known to one replica only"),
        ("ANALYZE", "different plans"),
        ("UPDATE greenline_meta SET value = 7 WHERE key = 'position'", "Greenline's own"),
        ("UPDATE greenline_meta SET value = ? WHERE key = ?", "Greenline's own"),
        ("DROP TABLE greenline_users", "Greenline's own"),
        ("CREATE TABLE greenline_more (a)", "Greenline's own"),
        ("CREATE INDEX i ON greenline_users (role)", "Greenline's own"),
        ("ALTER TABLE greenline_users ADD COLUMN more", "Greenline's own"),
        ("ALTER TABLE t RENAME TO 'greenline_t'", "Greenline's own"),
        ("CREATE VIRTUAL TABLE v USING dbstat", "no virtual tables"),
        ("INSERT INTO sqlite_schema VALUES ('table', 't', 't', 1, '')", "may not be modified"),
        ("EXPLAIN SELECT 1", "for a query to ask"),
        ("SELECT 1; SELECT 2", "more after the first"),
        ("SELECT 1 FROM", "incomplete input"),
    ],
)
def test_what_reaches_beyond_the_replicated_state_is_refused(tmp_path: Path, sql: str, because: str) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")
        before = database.rows("SELECT * FROM sqlite_schema")
        parameters: tuple[object, ...] = (7, "position") if "?" in sql else ()

        assert because in database.fails(Statement(sql, parameters)).message

        assert database.rows("SELECT * FROM sqlite_schema") == before
        assert database.opened().position == 2


def test_a_view_does_not_help_to_see_what_may_not_be_seen(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE VIEW v AS SELECT sqlite_version()")

        assert "shows where it runs" in database.fails("SELECT * FROM v").message


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIRTUAL TABLE f USING fts5(a)",
        "CREATE VIRTUAL TABLE r USING rtree(id, low, high)",
        "SELECT * FROM json_each('[1, 2]')",
        "PRAGMA table_info(t)",
        "PRAGMA user_version = 5",
        "ALTER TABLE t ADD COLUMN b REAL NOT NULL DEFAULT 1 CHECK (b > 0)",
        "SELECT 1 -- and no more; really",
        "",
    ],
)
def test_what_stays_within_it_is_done(tmp_path: Path, sql: str) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (a)")

        database.done(sql)


def test_an_index_of_words_and_one_of_boxes_can_be_queried(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE VIRTUAL TABLE f USING fts5(a)", "INSERT INTO f VALUES ('green line')")
        database.done("CREATE VIRTUAL TABLE r USING rtree(id, low, high)", "INSERT INTO r VALUES (1, 2, 3)")

        assert database.rows("SELECT a FROM f WHERE f MATCH 'line'") == [("green line",)]
        assert database.rows("SELECT id FROM r WHERE low < 3") == [(1,)]


@pytest.mark.parametrize(
    "statements",
    [
        ("INSERT INTO t VALUES (9223372036854775807, 0)",),
        ("INSERT INTO t VALUES (9223372036854775807, 0), (NULL, 1)",),
        ("INSERT INTO t VALUES (1, 0)", "UPDATE t SET id = 9223372036854775807", "INSERT INTO t (a) VALUES (1)"),
        ("INSERT INTO t VALUES (9223372036854775807, 0)", "INSERT INTO t (a) VALUES (1)", "DELETE FROM t WHERE id > 9"),
    ],
)
def test_no_table_comes_to_where_rowids_are_drawn_by_chance(tmp_path: Path, statements: tuple[str, ...]) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")

        assert database.fails(*statements).kind == "LastRowid"
        assert database.rows("SELECT * FROM t") == []


def test_a_table_that_has_no_more_rowids_is_no_full_disk(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        database.done("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a)", "INSERT INTO t (a) VALUES (1)")
        database.done("UPDATE sqlite_sequence SET seq = 9223372036854775807")

        failure = database.fails("INSERT INTO t (a) VALUES (2)")

        assert isinstance(failure, Failure)
        assert failure.kind == "Full"
        assert database.rows("SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "parameters", "because"),
    [
        ("SELECT ?", (2**63,), "too big"),
        ("SELECT ?", ([1],), "type list"),
        ("SELECT ?", (), "bindings"),
        ("SELECT 1\0", (), "null character"),
        ("SELECT ?", (1, 2), "Incorrect number"),
        ("SELECT :a", {"b": 1}, "no value for the parameter a"),
        ("SELECT CAST(x'ff' AS TEXT)", (), "not UTF-8"),
        ("SELECT zeroblob(100000000)", (), "too big"),
        ("SELECT randomblob(100000000)", (), "too big"),
    ],
)
def test_values_that_do_not_fit_fail(tmp_path: Path, sql: str, parameters: tuple[object, ...], because: str) -> None:
    with Database(tmp_path) as database:
        assert because in database.fails(Statement(sql, parameters)).message
        database.done("SELECT 1")
