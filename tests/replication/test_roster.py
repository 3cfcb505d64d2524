"""The roster: what changes of the cluster come to, at everybody alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenline.kernel.actions import Verdict
from greenline.kernel.database import Activate, Expire
from greenline.replication.port import Announce, Change, Join, Leave, Procedure, Seen, Weigh
from greenline.replication.roster import Changed, Roster, changed, founders, in_words
from greenline.replication.settings import Settings, Voting

SETTINGS = Settings(servers=("p", "q", "r"), voting=Voting(weights=(("p", 2),)))
PAY = Procedure("pay", 1, b"1")
PAY2 = Procedure("pay", 2, b"2")


def after(*changes: Change, lower_bound: int = 0) -> Changed:
    """The founders, after these changes, one a position."""
    now = Changed(founders(SETTINGS), changed(founders(SETTINGS), Expire(0), 0, 0).outcome)
    for position, change in enumerate(changes, start=1):
        now = changed(now.roster, change, position, lower_bound)
    return now


def names(roster: Roster) -> str:
    return " ".join(f"{seat.server}:{seat.weight}" for seat in roster.seats)


def test_founders_have_the_weights_that_they_were_given() -> None:
    assert names(founders(SETTINGS)) == "p:2 q:1 r:1"


@pytest.mark.parametrize(
    ("changes", "then"),
    [
        ((Join("s", b"s1"),), "p:2 q:1 r:1 s:1"),
        ((Join("a", b"a1"),), "a:1 p:2 q:1 r:1"),
        ((Join("s", b"s1"), Join("s", b"s1")), "p:2 q:1 r:1 s:1"),
        ((Leave("q"),), "p:2 r:1"),
        ((Leave("q"), Leave("q")), "p:2 r:1"),
        ((Weigh("q", 5),), "p:2 q:5 r:1"),
        ((Weigh("p", 0), Weigh("q", 0)), "p:0 q:0 r:1"),
        ((Announce("q", (PAY,)),), "p:2 q:1 r:1"),
    ],
)
def test_what_comes_of_a_change(changes: tuple[Change, ...], then: str) -> None:
    end = after(*changes)
    assert end.outcome.verdict is Verdict.DONE
    assert end.outcome.position == len(changes)
    assert names(end.roster) == then


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ((Leave("q"), Join("q", b"q1")), "q was the name of a server that left at position 1"),
        ((Join("s", b"s1"), Join("s", b"s2")), "s is the name of another server"),
        ((Join("q", b"q1"),), "q is the name of another server"),
        ((Leave("z"),), "z is no server of this cluster"),
        ((Weigh("z", 1),), "z is no server of this cluster"),
        ((Announce("z", ()),), "z is no server of this cluster"),
        ((Leave("q"), Leave("r"), Leave("p")), "all together would weigh 0"),
        ((Weigh("q", 0), Weigh("r", 0), Weigh("p", 0)), "all together would weigh 0"),
        ((Weigh("p", 0), Weigh("q", 0), Leave("r")), "all together would weigh 0"),
        ((Activate("pay", 1, b"1"),), "p q r do not have version 1 of pay"),
        ((Announce("p", (PAY,)), Announce("q", (PAY,)), Activate("pay", 1, b"1")), "r do not have version 1 of pay"),
        (
            (*(Announce(name, (PAY,)) for name in "pqr"), Activate("pay", 1, b"1"), Join("s", b"s1", (PAY2,))),
            "s does not have the procedures that are called here: pay 1",
        ),
        ((*tuple(Announce(name, (PAY,)) for name in "pqr"), Activate("pay", 1, b"x")), "do not have version 1"),
    ],
)
def test_nothing_comes_of_a_change_that_cannot_be(changes: tuple[Change, ...], why: str) -> None:
    before, end = after(*changes[:-1]), after(*changes)
    assert end.outcome.verdict is Verdict.FAILED
    assert why in end.outcome.value.decode()
    assert (end.roster, end.system) == (before.roster, ())


def test_a_cluster_does_not_become_too_light_for_its_bound() -> None:
    assert after(Leave("q"), lower_bound=3).outcome.verdict is Verdict.DONE
    assert "needs 3" in after(Leave("q"), Leave("r"), lower_bound=3).outcome.value.decode()


def test_a_new_version_of_a_procedure_takes_the_place_of_the_old_one() -> None:
    have_both = tuple(Announce(name, (PAY, PAY2)) for name in "pqr")
    end = after(*have_both, Activate("pay", 1, b"1"), Activate("pay", 2, b"2"))
    assert end.roster.active == (PAY2,)
    assert end.system == (Activate("pay", 2, b"2"),)


def test_only_who_left_for_nothing_more_to_come_of_it_is_void() -> None:
    roster = after(Leave("q", is_void=True), Leave("r")).roster
    assert [roster.is_void(name) for name in "pqr"] == [False, True, False]
    assert [roster.is_gone(name) for name in "pqr"] == [False, True, True]
    assert roster.weight_of("q") == 0


def test_sessions_end_where_the_last_server_has_said_that_it_knows() -> None:
    asked = after(Expire(7))
    assert asked.system == ()
    assert asked.roster.ending is not None
    assert asked.roster.ending.waiting == ("p", "q", "r")
    early = after(Expire(7), Seen("p", 0))
    assert early.roster == asked.roster, "p made this before it knew"
    some = after(Expire(7), Seen("p", 1), Seen("p", 3), Seen("r", 1))
    assert some.system == ()
    last = after(Expire(7), Seen("p", 1), Seen("r", 1), Seen("q", 3))
    assert (last.system, last.roster.ending) == ((Expire(1),), None), "what lies ahead cannot have gone unused"


def test_who_leaves_is_not_waited_for_and_who_joins_knows() -> None:
    gone = after(Expire(7), Seen("p", 1), Join("s", b"s1"), Seen("r", 1), Leave("q"))
    assert (gone.system, gone.roster.ending) == ((Expire(1),), None)


def test_one_ending_is_under_way_at_a_time() -> None:
    again = after(Expire(7), Seen("p", 1), Expire(9))
    assert again.outcome.verdict is Verdict.FAILED
    assert "once q r know it" in again.outcome.value.decode()


SOME = st.sampled_from("pqrstu")
CHANGES = st.lists(
    st.builds(Join, SOME, st.sampled_from((b"1", b"2")))
    | st.builds(Leave, SOME, st.booleans())
    | st.builds(Weigh, SOME, st.integers(0, 3)),
    max_size=12,
)


@given(CHANGES)
def test_whatever_is_asked_somebody_is_left_who_counts_and_nobody_comes_back(changes: list[Change]) -> None:
    roster, left = founders(SETTINGS), set[str]()
    for position, change in enumerate(changes, start=1):
        roster = changed(roster, change, position, 0).roster
        assert sum(seat.weight for seat in roster.seats) > 0
        assert roster.servers == tuple(sorted(set(roster.servers)))
        left |= {gone.server for gone in roster.gone}
        assert left.isdisjoint(roster.servers), in_words(change)
        assert {gone.server for gone in roster.gone} == left, "what has left stays known"
