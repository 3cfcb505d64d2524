"""Replicas that restarted at different times come to the same: what is executed together, and what alone, is no matter.

Which statements run together depends on what a replica has seen since it began, so nothing may depend on that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, Verdict, pack
from greenline.kernel.database import Applied, Apply, Commit, Digest, DigestOf
from greenline.kernel.statements import Statement, Work, encode

PATIENT = Limits(transaction_seconds=3600)
LAST = 2**63 - 1


def act(number: int, sql: str, *parameters: object, received: int = 0) -> Action:
    return Action("c@0", number, encode(Work(1, 2, (Statement(sql, parameters),))), received)


def play(place: Path, bundles: list[list[Action]], *, restarts: bool) -> tuple[list[object], bytes]:
    """What each bundle came to, and the state in the end."""
    database = Sqlite(place, PATIENT)
    replies: list[object] = []
    for bundle in bundles:
        applied = database.answer(Apply(database.position + 1, (pack(tuple(bundle)),)))
        assert isinstance(applied, Applied), applied
        replies.append(applied.replies)
        if restarts:
            database.answer(Commit(database.position))
            database.close()
            database = Sqlite(place, PATIENT)
    database.answer(Commit(database.position))
    digest = database.answer(DigestOf())
    database.close()
    assert isinstance(digest, Digest)
    return replies, digest.digest


def insert(numbers: range, sql: str, *, received: int = 0) -> list[Action]:
    return [act(number, sql, f"v{number}", received=received) for number in numbers]


SEVERAL = {
    "counts changes under a quoted name": [
        [act(1, "CREATE TABLE t (v)")],
        [act(2, 'INSERT INTO t VALUES ("total_changes"())')],
        [act(number, 'INSERT INTO t VALUES ("total_changes"())') for number in range(3, 9)],
    ],
    "counts changes behind a comment": [
        [act(1, "CREATE TABLE t (v)")],
        [act(2, "INSERT INTO t VALUES (changes/**/())")],
        [act(number, "INSERT INTO t VALUES (changes/**/())") for number in range(3, 9)],
    ],
    "has the last rowid for a moment": [
        [act(1, "CREATE TABLE t (id INTEGER PRIMARY KEY)"), act(2, "INSERT INTO t VALUES (1)")],
        [act(3, "UPDATE t SET id = ? WHERE id = ?", 2, 1)],
        [act(4, "UPDATE t SET id = ? WHERE id = ?", LAST, 2), act(5, "UPDATE t SET id = ? WHERE id = ?", 7, LAST)],
    ],
    "says that it received what is still to come": [
        [act(1, "CREATE TABLE t (v)"), act(2, "INSERT INTO t VALUES (?)", "v2")],
        insert(range(3, 8), "INSERT INTO t VALUES (?)", received=100),
        insert(range(5, 8), "INSERT INTO t VALUES (?)"),
    ],
    "has a trigger that takes the last rowid and gives it back": [
        [act(1, "CREATE TABLE a (v)"), act(2, "CREATE TABLE b (id INTEGER PRIMARY KEY, v)")],
        [
            act(
                3,
                f"CREATE TRIGGER g AFTER INSERT ON a BEGIN INSERT INTO b VALUES ({LAST}, 'm');"
                " INSERT INTO b (v) VALUES ('x'); DELETE FROM b WHERE v = 'm'; END",
            )
        ],
        insert(range(4, 9), "INSERT INTO a VALUES (?)"),
    ],
    "has too few parameters for a table that is gone": [
        [act(1, "CREATE TABLE t (v)"), act(2, "INSERT INTO t VALUES (?)", 1)],
        [act(3, "DROP TABLE t")],
        [act(4, "INSERT INTO t VALUES (?)")],
    ],
    "has too large a number for a table that has become wider": [
        [act(1, "CREATE TABLE t (v)"), act(2, "INSERT INTO t VALUES (?)", 1)],
        [act(3, "ALTER TABLE t ADD COLUMN w")],
        [act(4, "INSERT INTO t VALUES (?)", 2**63)],
    ],
    "asks for a plan with parameters and without": [
        [act(1, "EXPLAIN SELECT ?", 1)],
        [act(2, "EXPLAIN SELECT ?")],
    ],
    "numbers tables itself": [
        [
            act(number, f"CREATE TABLE {name} (id INTEGER PRIMARY KEY AUTOINCREMENT, v)")
            for number, name in enumerate("abcd", 1)
        ],
        [act(5, f"INSERT INTO sqlite_sequence (rowid, name, seq) VALUES ({LAST - 1}, 'x', 1)")],
        [act(6, "CREATE TRIGGER g AFTER INSERT ON d BEGIN UPDATE sqlite_sequence SET rowid = rowid + (1 << 62); END")],
        [act(7, "INSERT INTO d (v) VALUES (1)"), act(8, "INSERT INTO d (v) VALUES (1)")],
        [act(number, f"INSERT INTO {name} (v) VALUES (1)") for number, name in enumerate("abc", 9)],
        [act(12, "CREATE TABLE seen AS SELECT rowid AS r, * FROM sqlite_sequence")],
    ],
    "fills a full-text table": [
        [act(1, "CREATE VIRTUAL TABLE f USING fts5(x)")],
        insert(range(2, 12), "INSERT INTO f (x) VALUES (?)"),
        insert(range(12, 30), "INSERT INTO f (x) VALUES (?)"),
    ],
}


@pytest.mark.parametrize("name", SEVERAL)
def test_who_restarts_before_each_bundle_comes_to_what_who_never_does_comes_to(name: str, tmp_path: Path) -> None:
    bundles = SEVERAL[name]
    assert play(tmp_path / "never", bundles, restarts=False) == play(tmp_path / "always", bundles, restarts=True)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE e (n REFERENCES greenline_sessions (name) ON DELETE RESTRICT)",
        "CREATE TABLE e (n REFERENCES Greenline_Users (name))",
        "ALTER TABLE t ADD COLUMN n REFERENCES greenline_members (name)",
        "ALTER TABLE t RENAME TO/**/greenline_t",
    ],
)
def test_nobody_ties_a_table_of_theirs_to_one_of_ours(sql: str, tmp_path: Path) -> None:
    database = Sqlite(tmp_path, PATIENT)
    bundle = pack((act(1, "CREATE TABLE t (v)"), act(2, sql), act(3, "INSERT INTO t VALUES (1)")))
    applied = database.answer(Apply(1, (bundle,)))
    database.close()
    assert isinstance(applied, Applied), applied
    assert [each.verdict for each in applied.replies] == [Verdict.DONE, Verdict.FAILED, Verdict.DONE]


@pytest.mark.parametrize("limit", [20_000, 100_000])
def test_an_action_that_takes_too_long_leaves_nothing_that_stops_us(limit: int, tmp_path: Path) -> None:
    database = Sqlite(tmp_path, Limits(transaction_seconds=3600, steps=limit))
    endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    database.answer(Apply(1, (pack((act(1, "CREATE TABLE t (v)"),)),)))
    for position in range(2, 300):
        asked = act(position, endless if position % 2 else "INSERT INTO t VALUES (1)", received=position - 1)
        applied = database.answer(Apply(position, (pack((asked,)),)))
        assert isinstance(applied, Applied), applied
        assert applied.replies[0].verdict is (Verdict.FAILED if position % 2 else Verdict.DONE)
    database.close()
