"""Exactly once: who asks again, elsewhere, late or out of turn is told what was decided, or why nothing will be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.database import sessions
from greenline.database.memory import MemorySqlite
from greenline.database.sessions import STORED_BYTES, Interval, Step, merged, relaxed_step_of
from greenline.kernel.actions import WINDOW, Action, Outcome, Verdict
from greenline.kernel.database import Applied, Apply, Expire
from tests.database.asking import action, apply, ask, chunk, commit, decide, digest, outcome_of, rows, table, verdicts
from tests.database.plain_sessions import PlainSessions

# Repetition.


def test_a_request_that_comes_again_is_told_what_it_came_to() -> None:
    """Its client asked one server, heard nothing, and asked another; both bundles were ordered."""
    database = MemorySqlite()
    apply(database, "total")
    first = Outcome(Verdict.DONE, b"l1 7", 2, 1)
    again = Outcome(Verdict.DONE, b"l1 7", 2, 1, is_again=True)
    assert decide(database, "t/1 total", "s/1 append l1 7", "s/1 append l1 7")[1:] == (first, again)
    apply(database, "append l1 8")
    assert decide(database, "s/1 append l1 7") == (again,)
    assert rows(database, "read l1") == "l1 7 8"


def test_a_failure_is_told_again_also_when_it_would_succeed_by_now() -> None:
    database = MemorySqlite()
    assert verdicts(database, "s/1 transfer a1 a2 150") == "failed"
    apply(database, "transfer a3 a1 100")
    assert decide(database, "s/1 transfer a1 a2 150") == (Outcome(Verdict.FAILED, b"refused", 1, 0, is_again=True),)
    assert apply(database, "transfer a1 a2 200") == ["ok"]


def test_a_request_before_its_turn_is_not_decided_and_may_come_later() -> None:
    database = MemorySqlite()
    assert verdicts(database, "s/2 append l1 2", "s/1 append l1 1", "s/3 append l1 3") == "early done early"
    assert outcome_of(database, "s", 2).verdict is Verdict.UNKNOWN
    assert verdicts(database, "s/2 append l1 2", "s/3 append l1 3") == "done done"
    assert rows(database, "read l1") == "l1 1 2 3"


def test_who_is_early_in_an_unknown_session_leaves_no_trace() -> None:
    database, other = MemorySqlite(), MemorySqlite()
    assert verdicts(database, "s/2 total", "s/9 total") == verdicts(other, "t/2 total", "t/9 total")
    assert digest(database) == digest(other)


def test_numbers_that_no_client_uses_are_refused() -> None:
    database = MemorySqlite()
    strange = [
        Action("s", number, b"add c1 1", received, is_relaxed)
        for number in (-1, 0, 2**63 - 1, 2**64 - 1)
        for received in (0, 2**64 - 1)
        for is_relaxed in (False, True)
    ]
    assert verdicts(database, *strange) == " ".join(["released"] * 8 + ["early"] * 8)
    decide(database, "s/1 add c1 1", "s~1 add c1 1")
    assert verdicts(database, *strange) == " ".join(["released"] * 8 + ["early"] * 8)
    assert rows(database, "count c1") == "c1 2"


# What is kept.


def test_what_was_received_is_released_and_stays_so() -> None:
    database = MemorySqlite()
    decide(database, *(f"s/{number} append l1 {number}" for number in (1, 2, 3)))
    assert verdicts(database, action("s/4 total", received=2), "s/1 total", "s/2 total", "s/3 total") == (
        "done released released again"
    )
    assert verdicts(database, action("s/3 total", received=1), "s/2 total") == "again released", "it never falls"
    assert [outcome_of(database, "s", number).verdict.value for number in (1, 2, 3, 4, 5)] == [
        *("released", "released", "done", "done", "unknown")
    ]
    commit(database)
    assert [row[:2] for row in table(database, "outcomes")] == [("s", 3), ("s", 4)], "and takes no more place"


def test_a_repetition_and_a_refusal_may_say_as_well_what_was_received() -> None:
    database = MemorySqlite()
    decide(database, *(f"s/{number} total" for number in (1, 2, 3)))
    assert verdicts(database, action("s/3 total", received=1), "s/1 total") == "again released"
    assert verdicts(database, action("s/9 total", received=2), "s/2 total") == "early released"
    assert verdicts(database, action("s/3 total", received=99), "s/4 total") == "released done", (
        "and no more than there is"
    )
    assert outcome_of(database, "s", 4).verdict is Verdict.DONE


def test_a_relaxed_request_says_nothing_of_the_others() -> None:
    database = MemorySqlite()
    decide(database, "s/1 total", action("s~5 add c1 1", received=5))
    assert verdicts(database, "s/1 total") == "again"


def test_a_session_that_receives_nothing_is_crowded_at_last() -> None:
    database = MemorySqlite()
    decide(database, *(f"s/{number} add c1 1" for number in range(1, WINDOW + 1)))
    over = WINDOW + 1
    assert verdicts(database, f"s/{over} add c1 1", "s/1 add c1 1") == "crowded again"
    assert outcome_of(database, "s", over).verdict is Verdict.UNKNOWN
    assert verdicts(database, action(f"s/{over} add c1 1", received=1), f"s/{over + 1} add c1 1") == "done crowded"
    assert rows(database, "count c1") == f"c1 {over}"


@pytest.mark.parametrize("excess", [0, 1])
def test_of_a_long_outcome_only_the_verdict_is_kept(excess: int) -> None:
    database = MemorySqlite()
    name = "l" + "1" * (STORED_BYTES + excess - 3)
    (first,) = decide(database, f"s/1 append {name} 7")
    assert len(first.value) == STORED_BYTES + excess
    kept = Outcome(Verdict.DONE, b"" if excess else first.value, 1, 0, is_again=True, is_whole=not excess)
    assert decide(database, f"s/1 append {name} 7") == (kept,)
    assert outcome_of(database, "s", 1) == kept


# Relaxed requests.


def test_relaxed_requests_are_decided_once_in_any_order_and_have_numbers_of_their_own() -> None:
    database = MemorySqlite()
    asked = [f"s~{number} add c1 1" for number in (5, 1, 3, 1, 2, 4, 5)]
    assert verdicts(database, *asked) == "done done done again done done again"
    assert verdicts(database, "s/1 add c1 1", "s~1 add c1 1", "s~6 add c1 1") == "done again done"
    assert rows(database, "count c1") == "c1 7"
    commit(database)
    assert table(database, "intervals") == [("s", 1, 6)]
    assert outcome_of(database, "s", 3, is_relaxed=True) == Outcome(Verdict.DONE, is_again=True)
    assert outcome_of(database, "s", 7, is_relaxed=True).verdict is Verdict.UNKNOWN
    assert outcome_of(database, "s", 3).verdict is Verdict.UNKNOWN


@given(st.permutations(range(1, 12)))
def test_adjacent_intervals_are_one(numbers: list[int]) -> None:
    """Against the plain set; `near` is what the tables bring: two intervals that begin no later than right after it."""
    intervals: list[Interval] = []
    for count, number in enumerate(numbers[:-2], 1):
        near = sorted((each for each in intervals if each[0] <= number + 1), reverse=True)[:2]
        assert relaxed_step_of(number, near) is Step.DECIDE
        interval, replaced = merged(number, near)
        intervals = sorted([*(each for each in intervals if each not in replaced), interval])
        assert [n for first, last in intervals for n in range(first, last + 1)] == sorted(numbers[:count])
        assert all(low[1] + 1 < high[0] for low, high in pairwise(intervals))


# Expiry.


def test_a_session_that_was_not_used_is_over_and_its_requests_never_run_again() -> None:
    database = MemorySqlite()
    decide(database, "s/1 append l1 1", "s~1 add c1 1", "t/1 append l1 2")
    decide(database, "t/2 append l1 3")
    decide(database, system=(Expire(before=2),))
    late = ("s/1 append l1 1", "s/2 append l1 9", "s~1 add c1 1", "s~2 add c1 9")
    assert verdicts(database, *late) == "expired expired expired expired"
    assert verdicts(database, "t/2 append l1 3", "t/3 append l1 4") == "again done"
    assert rows(database, "read l1") == "l1 1 2 3 4"
    assert rows(database, "count c1") == "c1 1"
    assert outcome_of(database, "s", 1).verdict is outcome_of(database, "s", 1, True).verdict is Verdict.EXPIRED
    assert outcome_of(database, "u@1", 1).verdict is Verdict.EXPIRED
    assert outcome_of(database, "u@2", 1).verdict is Verdict.UNKNOWN


def test_who_was_named_after_the_horizon_may_begin() -> None:
    database = MemorySqlite()
    apply(database, "total")
    apply(database, "total")
    assert verdicts(database, "new@1/1 total", "new@2/1 total", "old/1 total", system=(Expire(2),)) == (
        "expired done expired"
    )


def test_nobody_begins_before_it_was_named() -> None:
    """It would outlive its own end, and ask a second time."""
    assert verdicts(MemorySqlite(), "s@1/1 total", "s@2/1 total", f"s@{'9' * 5000}/1 total") == "done early done"


@pytest.mark.parametrize("use", ["s/1 total", "s/9 total", "s~1 add c1 1", "s~2 add c1 1"])
def test_whatever_a_session_asks_keeps_it(use: str) -> None:
    database = MemorySqlite()
    decide(database, "s/1 total", "s~1 add c1 1")
    decide(database, use)
    decide(database, system=(Expire(before=2),))
    assert verdicts(database, "s/2 total") == "done"


def test_a_session_that_asks_in_the_bundle_that_ends_it_is_over() -> None:
    """What is ordered by the cluster itself comes before the actions."""
    database = MemorySqlite()
    decide(database, "s/1 total")
    assert verdicts(database, "s/2 total", system=(Expire(before=2),)) == "expired"


def test_the_horizon_never_falls_and_never_lies_ahead() -> None:
    database = MemorySqlite()
    for _ in range(4):
        apply(database, "total")
    decide(database, system=(Expire(before=4), Expire(before=1)))
    assert verdicts(database, "s@3/1 total", "s@4/1 total") == "expired done"
    decide(database, system=(Expire(before=2**70),))
    assert verdicts(database, "t@6/1 total", "t@7/1 total") == "expired done"


def test_nothing_is_left_of_who_is_over() -> None:
    """No tombstones: whoever was there is as if it had never been, but for what it did."""
    database, other = MemorySqlite(), MemorySqlite()
    for each, name in ((database, "s"), (other, "t")):
        decide(each, f"{name}/1 add c1 1", f"{name}/2 add c1 1", f"{name}~1 add c1 1", f"{name}~3 add c1 1")
    assert digest(database) != digest(other)
    for each in (database, other):
        decide(each, system=(Expire(before=2),))
    assert digest(database) == digest(other)


# Crashes.


def test_what_is_known_of_sessions_is_committed_with_what_they_did() -> None:
    database = MemorySqlite()
    decide(database, "s/1 append l1 1", "s~1 add c1 1")
    commit(database)
    decide(database, "s/2 append l1 2", "s~2 add c1 1")
    database.kill()
    assert verdicts(database, "s/1 append l1 1", "s/2 append l1 2", "s~1 add c1 1", "s~2 add c1 1") == (
        "again done again done"
    )
    assert (rows(database, "read l1"), rows(database, "count c1")) == ("l1 1 2", "c1 2")


# All of it at once, beside the plain twin.

ACTIONS = st.builds(
    lambda session, number, received, is_relaxed: Action(session, number, b"", received, is_relaxed),
    st.sampled_from(["s", "t", "u@3"]),
    st.integers(1, 6),
    st.integers(0, 4),
    st.booleans(),
)
BUNDLES = st.lists(st.tuples(st.lists(ACTIONS, max_size=6), st.none() | st.integers(0, 8)), max_size=9)


@settings(max_examples=150, deadline=None)
@given(BUNDLES)
def test_sessions_are_as_their_plain_twin(bundles: list[tuple[list[Action], int | None]]) -> None:
    """Any retries in any order, windows that fill, expiry in between: each request runs where the twin says, or never.

    Each adds one to a counter of its own, so that the counters say what has run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "WINDOW", 2)
        database, plain = MemorySqlite(), PlainSessions(window=2)
        for position, (actions, before) in enumerate(bundles, 1):
            system = () if before is None else (Expire(min(before, position)),)
            for each in system:
                plain.expire(each.before)
            asked = [_counted(each) for each in actions]
            applied = ask(Applied, database, Apply(position, (chunk(*asked),), system))
            assert [_said(each, reply) for each, reply in zip(asked, applied.replies, strict=True)] == [
                plain.decide(each, position, sub) for sub, each in enumerate(asked)
            ]
    for name in {str(each) for actions, _ in bundles for each in actions}:
        assert rows(database, f"count {_counter(name)}") == f"{_counter(name)} {plain.runs.count(name)}"


def _counted(asked: Action) -> Action:
    body = f"add {_counter(str(asked))} 1".encode()
    return Action(asked.session, asked.number, body, asked.received, asked.is_relaxed)


def _counter(name: str) -> str:
    return "c" + "".join(str(ord(letter)) for letter in name)


def _said(asked: Action, reply: Outcome) -> str:
    said = "again" if reply.is_again else reply.verdict.value
    return f"{said} {reply.position}.{reply.sub}" if reply.position and not asked.is_relaxed else said
