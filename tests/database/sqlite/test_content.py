"""Content: digests are equal exactly if the states are, whatever their pages look like."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from greenline.database.sqlite import content
from greenline.database.sqlite.tables import SCHEMA, write_meta, write_stands

MADE = """
CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text, twice AS (id * 2));
CREATE TABLE pairs (a TEXT, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE taken (rowid, _rowid_, oid);
CREATE INDEX by_text ON notes (text);
INSERT INTO notes (text) VALUES ('x'), (NULL), (1), (1.5), (x'78'), (CAST(x'ff00' AS TEXT));
INSERT INTO pairs VALUES ('a', 1), ('b', 2);
INSERT INTO taken VALUES (1, 2, 3);
"""


def database(*scripts: str) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for script in (SCHEMA, *scripts):
        connection.execute(script).fetchall()
    return connection


def digest(*scripts: str) -> bytes:
    return content.digest(database(*scripts))[1]


def test_equal_states_have_equal_digests_whatever_their_pages_look_like() -> None:
    otherwise = (
        "PRAGMA page_size = 1024; VACUUM",
        MADE,
        "WITH n (i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n LIMIT 500)"
        " INSERT INTO taken SELECT i, 0, randomblob(900) FROM n",
        "DELETE FROM taken WHERE rowid > 1",
        "DELETE FROM pairs; INSERT INTO pairs VALUES ('b', 2), ('a', 1); REINDEX",
    )
    assert digest(*otherwise) == digest(MADE)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes SET text = '1' WHERE id = 3",
        "UPDATE notes SET text = 1 WHERE id = 4",
        "UPDATE notes SET text = 1.0 WHERE id = 3",
        "UPDATE notes SET text = x'' WHERE id = 2",
        "UPDATE notes SET text = 'x' WHERE id = 5",
        "UPDATE notes SET text = CAST(x'ff01' AS TEXT) WHERE id = 6",
        "UPDATE notes SET text = 1.5000000000000002 WHERE id = 4",
        "UPDATE notes SET id = 9 WHERE id = 6",
        "UPDATE sqlite_sequence SET seq = 9",
        "UPDATE pairs SET b = '1' WHERE b = 1",
        "UPDATE taken SET oid = 4",
        "DELETE FROM pairs",
        "DROP INDEX by_text",
        "CREATE TABLE empty (a)",
        "CREATE VIEW v AS SELECT 1",
        "ANALYZE",
        "PRAGMA user_version = 1",
        "UPDATE greenline_meta SET value = 1 WHERE key = 'horizon'",
        "INSERT INTO greenline_members VALUES ('a', 'b', 'c', 'd')",
    ],
)
def test_the_least_change_changes_the_digest(change: str) -> None:
    assert digest(MADE, change) != digest(MADE)


def test_a_value_that_moves_from_one_column_to_the_next_changes_the_digest() -> None:
    made = "CREATE TABLE t (a, b, c)"
    said = [digest(made, f"INSERT INTO t VALUES {row}") for row in ("('', 1, NULL)", "(1, '', NULL)", "(NULL, '', 1)")]
    assert len(set(said)) == 3


def test_it_says_the_position_and_depends_on_the_outcomes_but_not_on_where_a_snapshot_came_from() -> None:
    one, other, third = database(MADE), database(MADE), database(MADE)
    for connection, outcomes in ((one, b"x" * 16), (other, b"x" * 16), (third, b"y" * 16)):
        write_stands(connection, 7, outcomes)
    write_meta(other, "basis", b"b" * 16)
    assert content.digest(one)[0] == 7
    assert content.digest(one) == content.digest(other) != content.digest(third)


def test_virtual_tables_count_by_what_lies_beneath_them() -> None:
    made = "CREATE VIRTUAL TABLE words USING fts5 (text); CREATE VIRTUAL TABLE boxes USING rtree (id, a, b)"
    states = [
        digest(made, each) for each in ("", "INSERT INTO words VALUES ('hay')", "INSERT INTO boxes VALUES (1, 2, 3)")
    ]
    assert len(set(states)) == 3


def test_rows_at_the_ends_of_what_a_rowid_can_be_and_in_between_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rowids = [-(2**63), -(2**63) + 1, -1, 0, 1, 700, 2**63 - 1]
    made = ["CREATE TABLE t (a INTEGER PRIMARY KEY, b)", *(f"INSERT INTO t VALUES ({each}, 'x')" for each in rowids)]
    whole = digest(*made)
    for each in rowids:
        assert digest(*made, f"DELETE FROM t WHERE a = {each}") != whole
        assert digest(*made, f"UPDATE t SET b = 'y' WHERE a = {each}") != whole
    monkeypatch.setattr(content, "ROWS_A_STEP", 2)
    assert digest(*made) == whole, "however many go in a step"
    monkeypatch.setattr(content, "BYTES_A_STEP", 1)
    assert digest(*made) == whole


def test_a_table_may_have_as_many_columns_as_sqlite_allows() -> None:
    columns = [f"c{n}" for n in range(2000)]
    made = f"CREATE TABLE wide ({', '.join(columns)}); INSERT INTO wide (c0, c1999) VALUES (1, 2)"
    assert digest(made) != digest(made, "UPDATE wide SET c1999 = 3")


def test_the_digest_is_of_what_is_committed(tmp_path: Path) -> None:
    path = str(tmp_path / "it.db")
    writer, reader = apsw.Connection(path), apsw.Connection(path)
    writer.pragma("journal_mode", "wal")
    writer.execute(SCHEMA)
    before = content.digest(reader)
    writer.execute("BEGIN; CREATE TABLE t (a)")
    assert content.digest(reader) == before
    writer.execute("COMMIT")
    assert content.digest(reader) != before
    assert not reader.in_transaction
