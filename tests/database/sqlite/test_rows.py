"""Plain inserts are made many rows at a time, and nobody can tell: not by outcomes, not by the state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from greenline.database.sqlite import rows
from greenline.kernel.actions import Action, Outcome, Series, Verdict, open_packed, pack
from greenline.kernel.statements import Statement, encode
from tests.database.sqlite.asking import Database, work

LAST = 2**63 - 1
MANY = 100
Row = Callable[[int], tuple[Any, ...]]
"""The parameters of the n-th."""

TOGETHER: dict[str, tuple[list[str], str, Row]] = {
    "the next rowid": (["CREATE TABLE t (v)"], "INSERT INTO t VALUES (?)", lambda n: (f"v{n}",)),
    "the next key": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL, w DEFAULT 'x')"],
        'insert into "t" (v) values ( ? );',
        lambda n: (f"v{n}",),
    ),
    "given keys, in no order": (
        ["CREATE TABLE t (v, id INTEGER PRIMARY KEY)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n, (n * 37) % 1009 - 300),
    ),
    "keys that are never used again": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v)", "INSERT INTO t VALUES (900, 1)", "DELETE FROM t"],
        "INSERT INTO t (v) VALUES (?)",
        lambda n: (n,),
    ),
    "rowids below zero": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)", "INSERT INTO t VALUES (-50, 1)"],
        "INSERT INTO t (v) VALUES (?)",
        lambda n: (n,),
    ),
    "a key that is no rowid": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY DESC, v)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: ((n * 37) % 1009, n),
    ),
    "columns by another case": (
        ["CREATE TABLE t (Id INTEGER PRIMARY KEY, A REAL, B TEXT COLLATE NOCASE UNIQUE)"],
        "INSERT INTO T (b, a) VALUES (?, ?)",
        lambda n: (n, str(n)),
    ),
    "types that are strict": (
        ["CREATE TABLE t (a INT, b TEXT) STRICT"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (str(n), n),
    ),
}
"""What may be inserted together."""

ALONE: dict[str, tuple[list[str], str, Row]] = {
    "a trigger counts": (
        [
            "CREATE TABLE t (v)",
            "CREATE TABLE l (n)",
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO l VALUES (last_insert_rowid()); END",
        ],
        "INSERT INTO t VALUES (?)",
        lambda n: (n,),
    ),
    "a row refers to the one after it": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, next REFERENCES t)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n, n + 1 if n < 65 else None),
    ),
    "names are alike but for letters that SQLite tells apart": (
        ['CREATE TABLE t ("é" DEFAULT (random()), "É" INT)'],
        'INSERT INTO t ("É") VALUES (?)',
        lambda n: (n,),
    ),
    "the time is kept": (
        ["CREATE TABLE t (v, at DEFAULT (strftime('%f', 'now')), r DEFAULT (random()))"],
        "INSERT INTO t (v) VALUES (?)",
        lambda n: (n,),
    ),
    "a check looks at chance": (
        ["CREATE TABLE t (v CHECK (random() % 1000 != 0))"],
        "INSERT INTO t VALUES (?)",
        lambda n: (n % 5,),
    ),
    "what is there already is ignored": (
        ["CREATE TABLE t (v UNIQUE ON CONFLICT IGNORE)"],
        "INSERT INTO t VALUES (?)",
        lambda n: (n % 7,),
    ),
    "there are no rowids": (
        ["CREATE TABLE t (k PRIMARY KEY, v) WITHOUT ROWID"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n, n),
    ),
    "a column is computed": (
        ["CREATE TABLE t (a, b AS (a + 1) STORED)"],
        "INSERT INTO t (a) VALUES (?)",
        lambda n: (n,),
    ),
    "a view takes them": (
        [
            "CREATE TABLE u (a)",
            "CREATE VIEW t AS SELECT a FROM u",
            "CREATE TRIGGER g INSTEAD OF INSERT ON t BEGIN INSERT INTO u VALUES (new.a); END",
        ],
        "INSERT INTO t VALUES (?)",
        lambda n: (n,),
    ),
    "two columns are one": (["CREATE TABLE t (a, b)"], "INSERT INTO t (a, A) VALUES (?, ?)", lambda n: (n, n + 1)),
    "a column is called rowid": (["CREATE TABLE t (_rowid_, v)"], "INSERT INTO t VALUES (?, ?)", lambda n: (n, n)),
}
"""Where something could tell."""

UNSURE: dict[str, tuple[list[str], str, Row]] = {
    "one is doubled": (
        ["CREATE TABLE t (v UNIQUE)"],
        "INSERT INTO t VALUES (?)",
        lambda n: (n if n != 60 else 3,),
    ),
    "one says its key, the next does not": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n * 5 if n % 4 else None, n),
    ),
    "a key is a text": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (str(n), n),
    ),
    "a key is a flag": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n if n != 40 else False, n),
    ),
    "the rowids come to an end": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)", f"INSERT INTO t VALUES ({LAST - 50}, 1)"],
        "INSERT INTO t (v) VALUES (?)",
        lambda n: (n,),
    ),
    "a key is the last there is": (
        ["CREATE TABLE t (id INTEGER PRIMARY KEY, v)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n if n != 40 else LAST, n),
    ),
    "a parameter is missing": (
        ["CREATE TABLE t (a, b)"],
        "INSERT INTO t VALUES (?, ?)",
        lambda n: (n, n) if n % 30 else (n,),
    ),
    "a parameter is nothing that SQL knows": (
        ["CREATE TABLE t (a)"],
        "INSERT INTO t VALUES (?)",
        lambda n: (n,) if n != 70 else ([1],),
    ),
}
"""Where some fail, or nobody can say which rowids they get."""
EVERY = TOGETHER | ALONE | UNSURE


def asked(made: list[str], text: str, row: Row) -> tuple[Action, list[Action]]:
    maker = Action("maker@0", 1, encode(work(*made)))
    return maker, [Action("s@0", n, encode(work(Statement(text, row(n)))), max(0, n - 200)) for n in range(1, MANY + 1)]


def played(place: Path, maker: Action, bundles: list[list[Action]]) -> tuple[list[tuple[Verdict, bytes]], Any]:
    """What they came to, and the rows of every table afterwards."""
    with Database(place) as database:
        database.decide(maker)
        came: list[Outcome] = []
        for bundle in bundles:
            came += database.apply(*bundle)
        database.commit()
        tables = database.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'greenline%'")
        held = {name: database.rows(f"SELECT * FROM {name}") for (name,) in tables}
        return [(each.verdict, each.value) for each in came], held


@pytest.mark.parametrize("name", EVERY)
def test_many_at_once_come_to_what_one_by_one_come_to(name: str, tmp_path: Path) -> None:
    maker, actions = asked(*EVERY[name])
    assert isinstance(open_packed(pack(tuple(actions[1:]))), Series), "they are to be packed as one"
    at_once = played(tmp_path / "p", maker, [actions[:1], actions[1:]])
    assert at_once == played(tmp_path / "q", maker, [[each] for each in actions])


def test_the_last_number_of_all_is_given_to_nobody_though_a_sequence_was_set_by_hand(tmp_path: Path) -> None:
    made = ["CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v)"]
    maker, actions = asked(made, "INSERT INTO t (v) VALUES (?)", lambda n: (n,))
    by_hand = Action("maker@0", 2, encode(work(f"UPDATE sqlite_sequence SET seq = {LAST - 16}")))
    at_once = played(tmp_path / "p", maker, [actions[:1], [by_hand], actions[1:17]])
    assert at_once == played(tmp_path / "q", maker, [[each] for each in [actions[0], by_hand, *actions[1:17]]])
    assert [verdict for verdict, _ in at_once[0][-2:]] == [Verdict.DONE, Verdict.FAILED]


@pytest.mark.parametrize("name", TOGETHER | ALONE)
def test_they_are_one_statement_where_nothing_can_tell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inserted = count()
    insert = rows.insert

    def counted(*given: Any) -> list[int] | None:
        came = insert(*given)
        if came is not None:
            next(inserted)
        return came

    monkeypatch.setattr("greenline.database.sqlite.runs.insert", counted)
    maker, actions = asked(*(TOGETHER | ALONE)[name])
    played(tmp_path / "p", maker, [actions[:1], actions[1:]])
    assert next(inserted) == (3 if name in TOGETHER else 0), "99 are 64, twice 16, and three"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (?, 1)",
        "INSERT INTO t VALUES (?), (?)",
        "INSERT INTO t VALUES (?1)",
        "INSERT INTO t VALUES (:a)",
        "INSERT OR IGNORE INTO t VALUES (?)",
        "INSERT INTO t VALUES (?) RETURNING 1",
        "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING",
        "INSERT INTO main.t VALUES (?)",
        "INSERT INTO t SELECT ?",
        "INSERT INTO t AS u VALUES (?)",
        "INSERT INTO t VALUES (?) -- one",
        "REPLACE INTO t VALUES (?)",
    ],
)
def test_only_the_plainest_texts_are_taken(sql: str) -> None:
    assert rows.text_of(sql) is None
