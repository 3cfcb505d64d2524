"""What actions may ask for: each operation, those that may be relaxed, those that have read, and procedures."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.database.memory import MemorySqlite
from greenline.database.procedures import PROCEDURES, Procedure
from greenline.kernel.actions import Action, Outcome, Read, Verdict, digest_of
from greenline.kernel.database import Activate, Apply, Overlay, Query
from tests.database.asking import (
    action,
    apply,
    chunk,
    commit,
    decide,
    digest,
    opened,
    rows,
    verdicts,
    why_refused,
)

FIRST, SECOND = PROCEDURES


def activate(procedure: Procedure) -> Activate:
    return Activate(procedure.name, procedure.version, procedure.digest)


def test_every_operation_says_what_it_came_to() -> None:
    database = MemorySqlite()
    assert apply(database, "append l1 3", "append l1 7", "read l1", "read l2") == ["l1 3", "l1 3 7", "l1 3 7", "l2"]
    assert apply(database, "read r1", "write r1 9", "write r1 010", "read r1") == ["r1 -", "r1 9", "r1 10", "r1 10"]
    assert apply(database, "transfer a1 a2 5", "total") == ["ok", "total 300"]
    assert apply(database, "count c1", "add c1 5", "add c1 7", "count c1") == ["c1 0", "ok", "ok", "c1 12"]
    assert apply(database, "get t1", "put t1 17 9", "get t1") == ["t1 -", "ok", "t1 9"]


def test_the_latest_put_stays() -> None:
    database = MemorySqlite()
    decide(database, "s/1 put t1 17 9", "s/2 put t1 16 8", "a/1 put t1 17 7", "s/3 get t1")
    assert rows(database, "get t1") == "t1 9"
    decide(database, "s/4 put t1 17 6")
    assert rows(database, "get t1") == "t1 6", "at the same time, the greater number of the same session"
    decide(database, "t/1 put t1 17 5")
    assert rows(database, "get t1") == "t1 5", "at the same time, the greater session"
    decide(database, "a/2 put t1 18 4")
    assert rows(database, "get t1") == "t1 4"


# Relaxed actions.

RELAXED = st.builds(
    lambda session, number, body: Action(session, number, body.encode(), is_relaxed=True),
    st.sampled_from(["s", "t"]),
    st.integers(1, 9),
    st.one_of(
        st.builds("add c{} {}".format, st.integers(1, 2), st.integers(0, 9)),
        st.builds("put t1 {} {}".format, st.integers(1, 3), st.integers(0, 9)),
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(RELAXED, max_size=12, unique_by=lambda each: (each.session, each.number)))
def test_relaxed_actions_come_to_the_same_in_any_order(data: st.DataObject, actions: list[Action]) -> None:
    one, other = MemorySqlite(), MemorySqlite()
    decide(one, *actions)
    decide(other, *data.draw(st.permutations(actions)))
    for question in ("count c1", "count c2", "get t1"):
        assert rows(one, question) == rows(other, question)


def test_a_strict_and_a_relaxed_put_of_the_same_number_come_to_the_same_in_any_order() -> None:
    """They have numbers of their own, so that only the values are left to compare."""
    for puts in (("s/1 put t1 5 1", "s~1 put t1 5 2"), ("s~1 put t1 5 2", "s/1 put t1 5 1")):
        database = MemorySqlite()
        decide(database, *puts)
        assert rows(database, "get t1") == "t1 2"


def test_what_depends_on_its_place_may_not_be_relaxed() -> None:
    database = MemorySqlite()
    reading = Action("s", 4, b"add c1 1", is_relaxed=True, reads=(Read(b"count c1", digest_of(b"c1 0")),))
    assert verdicts(database, "s~1 append l1 1", "s~2 transfer a1 a2 1", "s~3 addc1", reading) == " ".join(
        ["failed"] * 4
    )
    assert apply(database, "read l1", "count c1") == ["l1", "c1 0"]
    assert verdicts(database, "s~1 append l1 1") == "failed", "however often it is asked"


# Interactive actions.


def test_an_action_that_has_read_what_still_stands_is_done() -> None:
    database = MemorySqlite()
    apply(database, "write r1 7")
    assert verdicts(database, action("s/1 write r1 9", r1="r1 7", l1="l1")) == "done"
    assert rows(database, "read r1") == "r1 9"


def test_an_action_that_has_read_what_has_changed_is_a_conflict() -> None:
    """It changes nothing, and is decided: who asks again is told the same, whatever stands there by then."""
    database = MemorySqlite()
    apply(database, "write r1 8", "append l1 1")
    too_late = action("s/1 write r1 9", l1="l1 1", r1="r1 7")
    assert decide(database, too_late) == (Outcome(Verdict.CONFLICT, b"", 2, 0),)
    assert rows(database, "read r1") == "r1 8"
    apply(database, "write r1 7")
    assert decide(database, too_late) == (Outcome(Verdict.CONFLICT, b"", 2, 0, is_again=True),)
    assert rows(database, "read r1") == "r1 7"


def test_of_two_who_have_read_the_same_one_is_late() -> None:
    database = MemorySqlite()
    both = (action("s/1 write r1 1", r1="r1 -"), action("t/1 write r1 2", r1="r1 -"))
    assert verdicts(database, *both) == "done conflict"
    assert rows(database, "read r1") == "r1 1"


def test_what_an_action_has_read_changes_nothing_when_it_is_read_again() -> None:
    database = MemorySqlite()
    append = Read(b"append l1 5", digest_of(b"l1 5"))
    assert verdicts(database, Action("s", 1, b"total", reads=(append, append))) == "done"
    assert rows(database, "read l1") == "l1"


# Procedures.


def test_digests_tell_procedures_apart() -> None:
    others = (
        Procedure("deposit", 3, FIRST.arguments, FIRST.code),
        Procedure("withdraw", 1, FIRST.arguments, FIRST.code),
        Procedure("deposit", 1, FIRST.arguments, FIRST.code[:1]),
        Procedure("deposit", 1, "", FIRST.code),
    )
    assert len({each.digest for each in (*PROCEDURES, *others)}) == 6
    assert FIRST.digest == Procedure(FIRST.name, FIRST.version, FIRST.arguments, FIRST.code).digest


def test_a_call_runs_the_version_that_is_active_at_its_place() -> None:
    database = MemorySqlite()
    call = "call deposit a1 5"
    assert verdicts(database, f"s/1 {call}") == "failed", "none is active yet"
    assert verdicts(database, f"s/2 {call}", system=(activate(FIRST),)) == "done"
    assert verdicts(database, f"s/3 {call}", system=(activate(SECOND),)) == "done"
    assert apply(database, "read l9", "total", "transfer a1 a2 111", "transfer a1 a2 110") == [
        *("l9 5", "total 300", "refused", "ok")
    ]
    assert verdicts(database, f"s/4 {call}", system=(activate(FIRST),)) == "done"
    assert rows(database, "read l9") == "l9 5", "the first version again"


def test_a_call_that_breaks_a_constraint_or_changes_nobody_fails_as_a_whole() -> None:
    database = MemorySqlite()
    bad = ("a1 101", "a9 5", "a1", "a1 5 5", "5 a1")
    calls = [f"s/{number} call deposit {arguments}" for number, arguments in enumerate(bad, 1)]
    assert verdicts(database, *calls, system=(activate(SECOND),)) == " ".join(["failed"] * 5)
    assert verdicts(database, "s/6 call nobody a1 5") == "failed"
    assert apply(database, "read l9", "total", "transfer a3 a1 100") == ["l9", "total 300", "ok"]


def test_who_lacks_the_active_version_refuses_to_go_on() -> None:
    """To skip the call, or to run another version, would make it another database than the others are."""
    database = MemorySqlite(procedures=(FIRST,))
    decide(database, "s/1 call deposit a1 5", system=(activate(FIRST),))
    decide(database, "s/2 total", system=(activate(SECOND),))
    before, state = opened(database), digest(database)

    call = chunk("s/3 append l1 1", "s/4 call deposit a1 5")
    assert "version 2 of deposit" in why_refused(database, Apply(3, (call,)))
    assert (opened(database), digest(database)) == (before, state), "nothing of the bundle is left"
    assert "version 2 of deposit" in why_refused(database, Query(b"call deposit a1 5"))
    database.answer(Overlay(((call,),)))
    assert "version 2 of deposit" in why_refused(database, Query(b"total", is_dirty=True))
    assert rows(database, "total") == "total 300"

    assert verdicts(database, "s/3 total") == "done", "what does not call it goes on"


def test_a_version_of_another_text_is_another() -> None:
    forged = Activate("deposit", 1, SECOND.digest)
    database = MemorySqlite()
    decide(database, "s/1 total", system=(forged,))
    assert "version 1 of deposit" in why_refused(database, Apply(2, (chunk("s/2 call deposit a1 5"),)))


def test_what_is_active_survives_a_crash_with_the_rest() -> None:
    database = MemorySqlite()
    decide(database, "s/1 total", system=(activate(FIRST),))
    commit(database)
    decide(database, "s/2 total", system=(activate(SECOND),))
    database.kill()
    assert verdicts(database, "s/2 call deposit a1 5") == "done"
    assert rows(database, "read l9") == "l9", "the second was not committed"
