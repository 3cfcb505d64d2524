"""Bundles as columns: every action is shown as what it is, however it was packed, and next to whatever else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.access.wire import Bundle
from greenline.kernel.actions import Action, Outcome, Series, Verdict, open_packed, pack
from greenline.kernel.database import Expire
from greenline.kernel.statements import Conflict, Failure, Member, Result, Role, Statement, Work, encode
from greenline.pipeline import rows
from greenline.pipeline.rows_outcomes import came
from greenline.replication.port import BundleId, MadeIn

NOON = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1e6)
INSERT = "INSERT INTO t VALUES (?, ?)"


def work(*statements: Statement, now: int = NOON) -> bytes:
    return encode(Work(now, 7, statements))


def action(number: int, body: bytes) -> Action:
    return Action("c7@12", number, body)


def bundle(position: int, *chunks: bytes) -> Bundle:
    return Bundle(position, BundleId("p", position + 10), chunks, made_in=MadeIn(True, 3, ("p", "q")))


def shown(*bundles: Bundle, outcomes: list[list[Outcome]] | None = None) -> list[dict[str, Any]]:
    known = None if outcomes is None else [came(each) for each in outcomes]
    found: list[dict[str, Any]] = rows.actions_batch(bundles, known).to_pylist()
    return found


def one(body: bytes) -> dict[str, Any]:
    (found,) = shown(bundle(1, pack((action(1, body),))))
    return found


def test_an_action_is_shown_with_its_place_its_name_and_what_it_asks_for() -> None:
    twice = work(Statement(INSERT, (1, "a")), Statement("DELETE FROM t WHERE b = :b", {"b": None}))
    single = pack((action(1, work(Statement("SELECT 1"))), action(2, twice)))
    found = shown(bundle(4), bundle(5, single, pack((action(3, twice),))), bundle(6, pack((action(4, twice),))))

    assert [(row["position"], row["sub"], row["number"]) for row in found] == [
        (5, 0, 1),
        (5, 1, 2),
        (5, 2, 3),
        (6, 0, 4),
    ]
    assert found[1] == {
        "position": 5,
        "sub": 1,
        "session": "c7@12",
        "number": 2,
        "is_relaxed": False,
        "origin": "p",
        "bundle": 15,
        "component": "p q",
        "is_primary": True,
        "prim_index": 3,
        "kind": "work",
        "time": datetime(2026, 5, 1, 12, tzinfo=UTC),
        "statements": [INSERT, "DELETE FROM t WHERE b = :b"],
        "parameters": ['[1,"a"]', '{"b":null}'],
        "verdict": None,
        "outcome": None,
        "is_again": None,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x00\xff", {"blob": "00ff"}),
        (float("inf"), {"real": "inf"}),
        (-float("inf"), {"real": "-inf"}),
        ("two\nlines \u2028 and \U0001f600", "two\nlines \u2028 and \U0001f600"),
        (2**63, 2**63),
        (1.5, 1.5),
        (None, None),
    ],
)
def test_a_value_is_shown_as_json_and_told_from_every_other(value: object, expected: object) -> None:
    (written,) = one(work(Statement(INSERT, (1, value))))["parameters"]
    assert json.loads(written) == [1, expected]


VALUES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=4, max_size=40), st.lists(st.booleans(), min_size=3, max_size=3))
def test_it_does_not_show_how_actions_were_packed(pairs: list[tuple[Any, Any]], cuts: list[bool]) -> None:
    """Together they are a series, one by one they are none; and who stands beside them changes nothing."""
    actions = [action(number, work(Statement(INSERT, pair))) for number, pair in enumerate(pairs, 1)]
    together = pack(tuple(actions))
    assert isinstance(open_packed(together), Series)
    beside = [pack((action(99, b"\x94\x01 nonsense"),))] if cuts[0] else []
    alone = [pack((each,)) for each in actions]

    packed = shown(bundle(1, *beside, together, *beside))
    assert packed == shown(bundle(1, *beside, *alone, *beside))
    kinds = [row["kind"] for row in packed]
    assert kinds == ["garbled"] * len(beside) + ["work"] * len(pairs) + ["garbled"] * len(beside)


def test_a_series_whose_statements_differ_is_shown_statement_by_statement() -> None:
    tables = [f"INSERT INTO a_rather_long_name_{n} VALUES (?)" for n in range(5)]
    packed = pack(tuple(action(n, work(Statement(sql, (n,)))) for n, sql in enumerate(tables, 1)))
    assert isinstance(open_packed(packed), Series)
    assert [row["statements"] for row in shown(bundle(1, packed))] == [[sql] for sql in tables]


def test_what_no_database_can_open_is_garbled_also_within_a_series() -> None:
    """Text where bytes are to be: what the client expected to see."""
    good = [work(Statement(INSERT, (n, "a"))) for n in range(5)]
    bodies = [*good[:2], good[2][:-2] + b"\xa1a", *good[3:]]
    actions = [action(number, body) for number, body in enumerate(bodies, 1)]
    together = pack(tuple(actions))
    assert isinstance(open_packed(together), Series)
    for chunks in ([together], [pack((each,)) for each in actions]):
        assert [row["kind"] for row in shown(bundle(1, *chunks))] == ["work", "work", "garbled", "work", "work"]


def test_what_passwords_are_checked_against_is_not_shown() -> None:
    appointed = one(encode(Role("ada", "write", "scrypt$secret")))
    dropped = one(encode(Role("ada", "read", "")))
    assert (appointed["kind"], appointed["statements"], appointed["time"]) == ("role", [], None)
    assert appointed["parameters"] == ['{"user":"ada","role":"write"}']
    assert dropped["parameters"] == ['{"user":"ada","role":null}']
    member = one(encode(Member("q", "h:1", "h:2", "h:3")))
    assert member["kind"] == "member"
    assert json.loads(member["parameters"][0])["clients"] == "h:3"


def test_what_cannot_be_opened_keeps_its_place() -> None:
    garbled = pack((action(1, b"x"), action(2, b"y")))[:-3]
    found = shown(bundle(1, garbled, pack((action(3, work(Statement("SELECT 1"))),))))
    assert [(row["sub"], row["kind"], row["session"]) for row in found] == [
        (0, "garbled", None),
        (1, "garbled", None),
        (2, "work", "c7@12"),
    ]


def test_a_body_with_something_behind_it_hides_nothing_of_the_next() -> None:
    """Bodies are opened in one go; still each is opened by itself."""
    good = work(Statement("SELECT 1"))
    found = shown(bundle(1, pack((action(1, good + good), action(2, good)))))
    assert [row["kind"] for row in found] == ["garbled", "work"]


def test_numbers_that_no_column_holds_are_not_shown() -> None:
    found = shown(bundle(1, pack((action(2**64 - 1, work(now=2**64 - 1)), action(1, work())))))
    assert [(row["number"], row["time"] is None) for row in found] == [(None, True), (1, False)]


def test_outcomes_say_what_came_of_it() -> None:
    done = Outcome(Verdict.DONE, encode((Result(1, 9),)), 1, 0)
    returned = Outcome(Verdict.DONE, encode((Result(0, 0, ("a",), ((b"\x01",),)), Result(2))), 1, 1)
    failed = Outcome(
        Verdict.FAILED, encode(Failure(2067, "ConstraintUnique", "UNIQUE constraint failed: t.a", 1)), 1, 2
    )
    conflict = Outcome(Verdict.CONFLICT, encode(Conflict(3)), 1, 3, is_again=True)
    bare = Outcome(Verdict.EXPIRED)
    chunk = pack(tuple(action(n, work()) for n in range(1, 6)))

    found = shown(bundle(1, chunk), outcomes=[[done, returned, failed, conflict, bare]])
    assert [row["verdict"] for row in found] == ["done", "done", "failed", "conflict", "expired"]
    assert [row["outcome"] and json.loads(row["outcome"]) for row in found] == [
        [{"changes": 1, "last_id": 9}],
        [
            {"changes": 0, "last_id": 0, "columns": ["a"], "rows": [[{"blob": "01"}]]},
            {"changes": 2, "last_id": 0},
        ],
        {"statement": 1, "kind": "ConstraintUnique", "code": 2067, "message": "UNIQUE constraint failed: t.a"},
        {"statement": 3},
        None,
    ]
    assert [row["is_again"] for row in found] == [False, False, False, True, False]

    alike = shown(bundle(1, pack((action(1, work()), action(2, work())))), outcomes=[[done, done]])
    assert [row["outcome"] for row in alike] == ['[{"changes":1,"last_id":9}]'] * 2
    with pytest.raises(ValueError, match="position 1 has 5 actions, and 1 outcomes"):
        shown(bundle(1, chunk), outcomes=[[done]])


def test_bundles_come_back_as_they_were() -> None:
    bundles = [
        bundle(1, pack((action(1, work()), action(2, work()))), pack((action(3, work()),))),
        Bundle(2, BundleId("q", 1), (), b"change", 2**32 - 1, (Expire(1),)),
        Bundle(3, BundleId("r", 4), (), made_in=MadeIn(False, 3, ("r", "s"))),
    ]
    batch = rows.bundles_batch(bundles, [b"one", b"two", b"three"])
    assert rows.bundles_of(batch) == bundles
    assert batch.column("actions").to_pylist() == [3, 0, 0]
    assert batch.column("digest").to_pylist() == [b"one", b"two", b"three"]
