"""What is captured of a bundle is what it has changed: applied to what was there before, it gives what is there now."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from greenline.database.sqlite import tables
from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Verdict
from greenline.kernel.database import Applied, Apply, Commit, Digest, DigestOf
from greenline.kernel.statements import Statement
from greenline.pipeline.capture import AFTER, BEFORE, DELETE, INSERT, Capture, Changed
from greenline.pipeline.captured import rows_of, tables_of
from greenline.pipeline.twin import Twin
from tests.pipeline.orders import Order
from tests.sql.scripts import SEED, first

SOME = int(os.environ.get("SQL_STATEMENTS", 800))
"""Statements; ten thousand of them are right, too."""
_encode = msgspec.msgpack.encode


class Copy:
    """The tables as the changes tell them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[bytes, bytes]] = {}
        """By key the names and values of each row, packed, so that 1 is not 1.0."""

    def take(self, changes: Iterable[Changed]) -> None:
        for each in changes:
            rows = self.tables.setdefault(each.table, {})
            for row in each.rows:
                key, held = _encode(row[: each.width]), _encode((each.columns, row[each.width :]))
                if each.kind in (DELETE, BEFORE):
                    assert rows.pop(key) == held, f"{each.kind} of what was not there in {each.table}"
                else:
                    assert each.kind in (INSERT, AFTER)
                    assert key not in rows, f"{each.kind} of what was there in {each.table}"
                    rows[key] = held

    def content(self) -> dict[str, list[tuple[bytes, bytes]]]:
        return {name: sorted(rows.items()) for name, rows in sorted(self.tables.items()) if rows}


def content(path: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """What is committed."""
    connection = apsw.Connection(str(path / tables.FILE))
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for name, table in tables_of(connection).items():
        rows = [
            (_encode(row[: table.width]), _encode((table.names, row[table.width :])))
            for row in rows_of(connection, table)
        ]
        if rows:
            found[name] = sorted(rows)
    connection.close()
    return dict(sorted(found.items()))


@pytest.fixture
def twin(tmp_path: Path) -> Iterator[Twin]:
    made = Twin(tmp_path)
    yield made
    made.close()


def shown(changes: Iterable[Changed]) -> list[tuple[Any, ...]]:
    return [(each.kind, each.table, *row[each.width :]) for each in changes for row in each.rows]


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 40], ids=["committed one by one", "in long transactions"])
def test_changes_of_any_statements_lead_from_one_state_to_the_next(together: int, tmp_path: Path) -> None:
    """Tables of every kind, triggers, cascades, upserts, changes of the schema, and much that fails."""
    chance = random.Random(together)
    order, copy, twin = Order(), Copy(), Twin(tmp_path / "twin")
    replica = Sqlite(tmp_path / "replica", Limits(transaction_seconds=3600))
    script = first(SOME, SEED)
    while script:
        several = [script.pop(0) for _ in range(min(len(script), chance.randint(1, 5)))]
        bundle = order.bundle(*several)
        outcomes, changes = twin.apply(bundle)
        copy.take(changes)
        applied = replica.answer(Apply(bundle.position, bundle.actions))
        assert isinstance(applied, Applied)
        assert applied.replies == outcomes, several
        if chance.randint(1, together) == 1:
            twin.commit()
            assert copy.content() == content(tmp_path / "twin"), several
    twin.commit()
    replica.answer(Commit(twin.position))
    assert copy.content() == content(tmp_path / "twin") == content(tmp_path / "replica")
    assert Digest(*twin.digest()) == replica.answer(DigestOf())
    twin.close()
    replica.close()


def test_what_an_action_undoes_or_does_twice_is_not_told(twin: Twin) -> None:
    order = Order()
    twin.apply(order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"))
    _, changes = twin.apply(
        order.of(
            "INSERT INTO t VALUES (3, 'c'), (4, 'a')",  # fails, and its first row with it
            "INSERT INTO t VALUES (5, 'e')",
            "DELETE FROM t WHERE id = 5",
            "UPDATE t SET a = 'x' WHERE id = 1",
            "UPDATE t SET a = 'y' WHERE id = 1",
            "UPDATE t SET a = 'z' WHERE id = 2",
            "UPDATE t SET a = 'b' WHERE id = 2",
        )
    )
    assert shown(changes) == [(BEFORE, "t", 1, "a"), (AFTER, "t", 1, "y")]


def test_rows_that_are_inserted_together_are_told_as_if_each_were_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter makes one statement of many, and SQLite does not tell us of each of its rows: the adapter does."""
    together: list[int] = []
    inserted = Capture.inserted

    def noted(capture: Capture, table: str, rowids: Sequence[int]) -> None:
        together.extend(rowids)
        inserted(capture, table, rowids)

    monkeypatch.setattr(Capture, "inserted", noted)
    order, copy, twin, insert = Order(), Copy(), Twin(tmp_path), "INSERT INTO T (id, a) VALUES (?, ?)"

    def applied(*statements: Statement) -> list[Changed]:
        _, changes = twin.apply(order.bundle(*((each,) for each in statements)))
        copy.take(changes)
        return changes

    applied(Statement("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)"), Statement(insert, (1, "one")))
    again = applied(Statement("DELETE FROM t"), *(Statement(insert, (n, f"a{n}")) for n in range(1, 41)))
    assert shown(again)[:3] == [(BEFORE, "t", 1, "one"), (AFTER, "t", 1, "a1"), (INSERT, "t", 2, "a2")]
    assert {1, 16, 32} <= set(together), "they were not inserted together"

    # One is there already: all of its run are undone, and done one by one.
    some = applied(*(Statement(insert, (n, "a5" if n == 60 else f"a{n}")) for n in range(41, 81)))
    assert [row[2] for row in shown(some)] == [n for n in range(41, 81) if n != 60]
    gone = applied(*(Statement(insert, (n, n)) for n in range(100, 140)), Statement("DELETE FROM t WHERE id >= 100"))
    assert gone == []

    together.clear()
    twin.apply(order.of("INSERT INTO t (a) VALUES ('x')"))  # not told to the copy
    order.series("INSERT INTO t (a) VALUES (?)", [(0,)])
    _, first = twin.apply(order.bundles[-1])
    _, rest = twin.apply(order.series("INSERT INTO t (a) VALUES (?)", [(n,) for n in range(1, 65)]))
    assert [row[3] for row in shown(first + rest)] == list(range(65))
    assert len(together) == 64
    twin.commit()
    copy.take([*first, *rest])
    copy.tables["t"][_encode((81,))] = _encode((("id", "a"), (81, "x")))
    assert copy.content() == content(tmp_path)
    twin.close()


def test_rows_that_a_statement_replaces_cascades_to_or_triggers_are_told(twin: Twin) -> None:
    order = Order()
    twin.apply(
        order.of(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)",
            "CREATE TABLE child (t REFERENCES t ON DELETE CASCADE)",
            "CREATE TABLE seen (a)",
            "CREATE TRIGGER see AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (new.a); END",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO child VALUES (3)",
        )
    )
    _, replaced = twin.apply(order.of("INSERT OR REPLACE INTO t VALUES (2, 'a')"))
    assert shown(replaced) == [
        (INSERT, "seen", "a"), (DELETE, "t", 1, "a"), (BEFORE, "t", 2, "b"), (AFTER, "t", 2, "a"),
    ]  # fmt: skip
    _, deleted = twin.apply(order.of("DELETE FROM t"))
    assert shown(deleted) == [(DELETE, "child", 3), (DELETE, "t", 2, "a"), (DELETE, "t", 3, "c")]


def test_null_in_a_key_and_a_key_of_another_type_are_rows_like_others(twin: Twin) -> None:
    """SQLite's changesets leave out the first; Python takes 1 and 1.0 for the same."""
    order = Order()
    twin.apply(order.of("CREATE TABLE n (k PRIMARY KEY, v)", "CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID"))
    _, inserted = twin.apply(order.of("INSERT INTO n VALUES (NULL, 1), (NULL, 2)", "INSERT INTO w VALUES (1, 'int')"))
    assert shown(inserted) == [(INSERT, "n", None, 1), (INSERT, "n", None, 2), (INSERT, "w", 1, "int")]
    _, changed = twin.apply(order.of("UPDATE n SET v = 3 WHERE v = 2", "REPLACE INTO w VALUES (1.0, 'int')"))
    assert repr(shown(changed)) == repr(
        [(BEFORE, "n", None, 2), (AFTER, "n", None, 3), (DELETE, "w", 1, "int"), (INSERT, "w", 1.0, "int")]
    )


def test_changes_of_a_table_itself_are_changes_of_its_rows(twin: Twin) -> None:
    order = Order()
    twin.apply(order.of("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"))
    _, wider = twin.apply(order.of("ALTER TABLE t ADD COLUMN b DEFAULT 'new'"))
    assert shown(wider) == [(BEFORE, "t", 1), (AFTER, "t", 1, "new")]
    _, renamed = twin.apply(order.of("ALTER TABLE t RENAME TO u"))
    assert shown(renamed) == [(DELETE, "t", 1, "new"), (INSERT, "u", 1, "new")]
    _, copied = twin.apply(order.of("CREATE TABLE v AS SELECT * FROM u", "DROP TABLE u"))
    assert shown(copied) == [(DELETE, "u", 1, "new"), (INSERT, "v", 1, "new")]
    _, indexed = twin.apply(order.of("CREATE INDEX i ON v (a)"))
    assert indexed == []


@pytest.mark.parametrize(
    "drop",
    [
        ("DROP TABLE t",),
        ('drop\n/* it */table if exists "T"',),
        ("DROP TABLE main.[t]",),
        ("ALTER TABLE t RENAME TO u", "DROP TABLE u"),
    ],
)
@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
        "CREATE TABLE t (id PRIMARY KEY, a) WITHOUT ROWID",
        "CREATE TABLE t (rowid, oid, _rowid_)",
    ],
)
def test_a_table_that_is_dropped_and_made_again_just_as_it_was_has_lost_its_rows(
    twin: Twin, made: str, drop: tuple[str, ...]
) -> None:
    """On the page that has become free, it looks as if it had been there all the time."""
    order, copy = Order(), Copy()
    values = "3, 'new', 0" if "oid" in made else "3, 'new'"
    old = "(1, 'old', 0), (2, 'old', 0)" if "oid" in made else "(1, 'old'), (2, 'old')"
    copy.take(twin.apply(order.of(made, f"INSERT INTO t VALUES {old}"))[1])
    copy.take(twin.apply(order.of(*drop, made, f"INSERT INTO t VALUES ({values})"))[1])
    assert len(copy.content()["t"]) == 1
    copy.take(twin.apply(order.of(*drop, made))[1])
    assert copy.content() == {}


@pytest.mark.parametrize("name", ["a b", 'a"b', "it's", "[x", "", "ä", "a  b", "DROP"])
def test_a_table_of_any_name_that_is_dropped_is_found_in_what_drops_it(twin: Twin, name: str) -> None:
    order, copy = Order(), Copy()
    quoted = '"' + name.replace('"', '""') + '"'
    made = f"CREATE TABLE {quoted} (id INTEGER PRIMARY KEY)"
    copy.take(twin.apply(order.of(made, f"INSERT INTO {quoted} VALUES (1)"))[1])
    copy.take(twin.apply(order.of(f"DROP TABLE{quoted}", made))[1])
    assert copy.content() == {}


@pytest.mark.parametrize(
    "fewer",
    [
        ("ALTER TABLE t DROP COLUMN b",),
        ("DROP TABLE t", "CREATE TABLE t (id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1, 2)"),
        ("DROP TABLE t", "CREATE TABLE t (id PRIMARY KEY, a) WITHOUT ROWID", "INSERT INTO t VALUES (1, 2)"),
    ],
)
@pytest.mark.parametrize("kind", ["", "WITHOUT ROWID"])
def test_a_row_that_is_changed_after_its_table_has_got_fewer_columns_is_told(
    twin: Twin, kind: str, fewer: tuple[str, ...]
) -> None:
    order, copy = Order(), Copy()
    made = f"CREATE TABLE t (id INTEGER PRIMARY KEY, a, b) {kind}"
    copy.take(twin.apply(order.of(made, "INSERT INTO t VALUES (1, 2, 3)"))[1])
    outcomes, changes = twin.apply(order.of(*fewer, "UPDATE t SET a = 9"))
    assert {each.verdict for each in outcomes} == {Verdict.DONE}
    copy.take(changes)
    ((_, held),) = copy.content()["t"]
    assert msgspec.msgpack.decode(held) == [["id", "a"], [1, 9]]


def test_values_survive_as_they_are(twin: Twin) -> None:
    """Also text that is none, in rows that are there before, after and in between."""
    order = Order()
    twin.apply(order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, v, twice AS (id * 2))"))
    values = "(1, -9223372036854775808), (2, 1e308), (3, x'00ff'), (4, 'a' || char(0) || 'b'), (5, NULL), (6, 2.0)"
    _, inserted = twin.apply(order.of(f"INSERT INTO t VALUES {values}"))
    assert [row[3] for row in shown(inserted)] == [-(2**63), 1e308, b"\0\xff", "a\0b", None, 2.0]

    _, changed = twin.apply(order.of("UPDATE t SET v = CAST(x'ff41' AS TEXT) WHERE id = 1"))
    none = msgspec.msgpack.Ext(1, b"\xffA")
    assert shown(changed) == [(BEFORE, "t", 1, -(2**63)), (AFTER, "t", 1, none)]
    _, deleted = twin.apply(order.of("DELETE FROM t WHERE id < 3"))
    assert shown(deleted) == [(DELETE, "t", 1, none), (DELETE, "t", 2, 1e308)]


def test_rows_without_any_name_for_their_number_are_told_by_what_they_hold(twin: Twin) -> None:
    order = Order()
    twin.apply(order.of("CREATE TABLE t (rowid, oid, _rowid_)", "INSERT INTO t VALUES (1, 2, 3), (1, 2, 3), (4, 5, 6)"))
    _, changed = twin.apply(order.of("DELETE FROM t WHERE rowid = 4", "INSERT INTO t VALUES (1, 2, 3)"))
    assert shown(changed) == [(DELETE, "t", 4, 5, 6), (INSERT, "t", 1, 2, 3)]


def test_an_action_that_rolls_all_back_hides_nothing_of_the_others(twin: Twin, tmp_path: Path) -> None:
    order, copy = Order(), Copy()
    copy.take(twin.apply(order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE ON CONFLICT ROLLBACK)"))[1])
    for number in range(3):
        _, changes = twin.apply(order.of(f"INSERT INTO t VALUES ({number}, 'a{number}')"))
        copy.take(changes)
    copy.take(twin.apply(order.of("CREATE TABLE u AS SELECT * FROM t"))[1])  # it is applied again
    outcomes, changes = twin.apply(order.of("INSERT INTO t VALUES (10, 'b')", "INSERT INTO t VALUES (11, 'a1')"))
    copy.take(changes)
    assert [each.verdict for each in outcomes] == [Verdict.DONE, Verdict.FAILED]
    assert shown(changes) == [(INSERT, "t", 10, "b")]
    copy.take(twin.apply(order.of("DELETE FROM t WHERE id = 0"))[1])
    twin.commit()
    assert copy.content() == content(tmp_path)


def test_deleting_everything_takes_no_more_steps_than_at_a_replica(tmp_path: Path) -> None:
    """A replica clears the table in one step; whoever is told of each row would come to the limit of steps."""
    limits = Limits(steps=60_000)
    order, twin, replica = Order(), Twin(tmp_path / "twin", limits), Sqlite(tmp_path / "replica", limits)
    rows = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2500) INSERT INTO t SELECT x FROM n"
    )
    bundles = [order.of("CREATE TABLE t (a)"), *(order.of(rows) for _ in range(10)), order.of("DELETE FROM t")]
    changes: list[Changed] = []
    for bundle in bundles:
        outcomes, told = twin.apply(bundle)
        changes += told
        twin.commit()
        applied = replica.answer(Apply(bundle.position, bundle.actions))
        assert isinstance(applied, Applied)
        assert applied.replies == outcomes
        assert [each.verdict for each in outcomes] == [Verdict.DONE]
        replica.answer(Commit(bundle.position))
    assert Counter(kind for kind, *_ in shown(changes)) == {INSERT: 25_000, DELETE: 25_000}
    twin.close()
    replica.close()


@pytest.mark.parametrize("seed", range(6))
def test_what_was_prepared_while_nobody_listened_is_not_executed_so_again(tmp_path: Path, seed: int) -> None:
    """SQLite clears a table without a word of its rows, if that is how it prepared a DELETE: as it does while a bundle
    that came to the limit of steps is applied again."""
    chance, twin, order, copy = random.Random(seed), Twin(tmp_path, Limits(steps=20_000)), Order(), Copy()
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n {}) SELECT i FROM n"
    order.of(
        "CREATE TABLE s (id INTEGER PRIMARY KEY, a UNIQUE)",
        "CREATE TABLE w (k TEXT PRIMARY KEY, v REAL) WITHOUT ROWID",
        "CREATE TABLE l (a)",
    )
    for number in range(25):
        order.of(
            *chance.choices(
                (
                    *(f"DELETE FROM {table}" for table in "swl"),
                    f"CREATE TABLE x{number} (a)",
                    f"INSERT INTO s (a) VALUES ({number}), ({number}.5)",
                    f"INSERT OR ROLLBACK INTO s (a) VALUES ({chance.randrange(number + 1)})",
                    f"REPLACE INTO w VALUES ('{number % 7}', {number})",
                    f"INSERT INTO l {count.format('WHERE i < 3000')}",
                    f"INSERT INTO l {count.format('')}",
                    "INSERT INTO w SELECT 'c' || id, a FROM s",
                ),
                k=chance.randint(1, 4),
            )
        )
    for bundle in order.bundles:
        copy.take(twin.apply(bundle)[1])
        if chance.random() < 0.3:
            twin.commit()
    twin.commit()
    assert copy.content() == content(tmp_path)
    twin.close()


def test_rows_of_a_table_that_has_got_another_type_are_told_anew(twin: Twin) -> None:
    order = Order()
    twin.apply(order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)", "INSERT INTO t VALUES (1, 7)"))
    anew = "CREATE TABLE n (id INTEGER PRIMARY KEY, a BLOB)", "INSERT INTO n SELECT * FROM t", "DROP TABLE t"
    _, changes = twin.apply(order.of(*anew, "ALTER TABLE n RENAME TO t"))
    assert shown(changes) == [(BEFORE, "t", 1, 7), (AFTER, "t", 1, 7)]
