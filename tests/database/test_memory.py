"""The contract of a database adapter, kept by SQLite: positions, outcomes, digests, and what a crash leaves."""

from __future__ import annotations

import pytest

from greenline.database.memory import GARBLED, MemorySqlite
from greenline.kernel.actions import Outcome, OutcomeOf, Verdict
from greenline.kernel.database import Applied, Apply, Commit, Committed, Overlay, Query, Rows
from tests.database.asking import apply, ask, chunk, commit, decide, digest, opened, outcome_of, rows, why_refused


def test_an_action_that_fails_stops_no_other_and_leaves_nothing() -> None:
    database = MemorySqlite()
    replies = decide(
        database, "s/1 transfer a1 a2 101", "s/2 transfer a1 a9 5", "s/3 append l1 1", "s/4 dance", "s/5 total"
    )
    assert [reply.verdict.value for reply in replies] == ["failed", "failed", "done", "failed", "done"]
    assert [reply.value for reply in replies] == [b"refused", b"refused", b"l1 1", b"no such operation", b"total 300"]
    assert apply(database, "transfer a1 a2 100", "transfer a2 a3 200", "transfer a1 a2 1", "total") == [
        *("ok", "ok", "refused", "total 300")
    ]


def test_outcomes_say_where_they_were_decided() -> None:
    database = MemorySqlite()
    apply(database, "total")
    assert [(reply.position, reply.sub) for reply in decide(database, "s/1 total", "s/2 dance")] == [(2, 0), (2, 1)]


def test_a_bundle_may_come_in_chunks() -> None:
    whole, parts = MemorySqlite(), MemorySqlite()
    decide(whole, "s/1 append l1 1", "s/2 append l1 2")
    applied = ask(Applied, parts, Apply(1, (chunk("s/1 append l1 1"), chunk("s/2 append l1 2"))))
    assert [(reply.value, reply.sub) for reply in applied.replies] == [(b"l1 1", 0), (b"l1 1 2", 1)]
    assert opened(parts) == opened(whole)


def test_a_bundle_of_no_chunks_only_moves_the_position() -> None:
    database = MemorySqlite()
    apply(database, "append l1 1")
    contents = rows(database, "read l1")
    before = opened(database)
    assert ask(Applied, database, Apply(2, ())).replies == ()
    assert database.position == 2
    assert rows(database, "read l1") == contents
    assert opened(database).outcomes != before.outcomes, "the chain says where we are"


def test_a_position_is_neither_skipped_nor_repeated() -> None:
    database = MemorySqlite()
    apply(database, "append l1 1")
    for position in (0, 1, 3):
        assert "skipped or repeated" in why_refused(database, Apply(position, (chunk("t/1 append l1 2"),)))
    assert rows(database, "read l1") == "l1 1"
    assert why_refused(database, Commit(2)) == "commit 2: 0 is committed, and 1 applied"
    assert database.answer(Commit(1)) == Committed(1, durable=0)
    assert why_refused(database, Commit(0)) == "commit 0: 1 is committed, and 1 applied"
    assert database.answer(Commit(1)) == Committed(1, durable=0)


def test_what_cannot_be_opened_has_failed_and_harms_nobody_else() -> None:
    """Every replica comes to the same, so that nobody has to stop; there are as many outcomes as it says it has."""
    database = MemorySqlite()
    garbled = b"\x92\xc1\xc1"
    answer = database.answer(Apply(1, (chunk("s/1 append l1 1"), garbled, b"nonsense", chunk("t/1 append l1 2"))))
    assert isinstance(answer, Applied)
    assert [(each.verdict.value, each.value, each.sub) for each in answer.replies] == [
        ("done", b"l1 1", 0),
        ("failed", GARBLED, 1),
        ("failed", GARBLED, 2),
        ("done", b"l1 1 2", 3),
    ]


def test_what_is_beyond_a_commit_stays_open() -> None:
    database = MemorySqlite()
    for value in (1, 2, 3):
        apply(database, f"append l1 {value}")
    before, state = opened(database), digest(database)
    assert database.answer(Commit(2)) == Committed(2, durable=0)
    assert (opened(database), digest(database)) == (before, state)
    assert rows(database, "read l1") == "l1 1 2 3"
    assert (database.committed, database.position) == (2, 3)
    database.kill()
    assert rows(database, "read l1") == "l1 1 2"
    assert apply(database, "append l1 3") == ["l1 1 2 3"]
    assert (opened(database), digest(database)) == (before, state)


def test_a_kill_keeps_what_was_committed_and_loses_the_rest() -> None:
    database = MemorySqlite()
    apply(database, "append l1 1")
    commit(database)
    committed = opened(database)
    apply(database, "append l1 2")
    database.kill()
    assert opened(database) == committed
    database.kill()
    assert opened(database) == committed


def test_a_power_loss_may_lose_commits_but_never_what_was_called_durable() -> None:
    database = MemorySqlite(image_every=2)
    durable = []
    for position in range(1, 6):
        apply(database, f"append l1 {position}")
        durable.append(ask(Committed, database, Commit(position)).durable)
    assert durable == [0, 2, 2, 4, 4]
    database.lose_power()
    assert opened(database).position == opened(database).durable == 4
    assert apply(database, "append l1 50") == ["l1 1 2 3 4 50"]
    database.lose_power()
    assert rows(database, "read l1") == "l1 1 2 3 4"


@pytest.mark.parametrize("crash", [MemorySqlite.kill, MemorySqlite.lose_power])
def test_a_new_one_survives_a_crash_as_well(crash: object) -> None:
    database = MemorySqlite()
    apply(database, "write r1 1")
    assert callable(crash)
    crash(database)
    assert opened(database) == opened(MemorySqlite())


def test_digests_are_equal_exactly_if_the_states_are() -> None:
    one, other = MemorySqlite(image_every=1), MemorySqlite(image_every=9)
    for value in (1, 2):
        for database in (one, other):
            apply(database, f"append l1 {value}", "transfer a1 a3 70")
    one.answer(Commit(1))
    assert digest(one) == digest(other), "what is committed and what is open makes no difference"
    assert opened(one).outcomes == opened(other).outcomes


@pytest.mark.parametrize(
    ("this", "that"),
    [
        ("s/1 read l1", "s/1 total"),
        ("s/1 append l1 1", "t/1 append l1 1"),
        ("s~1 add c1 1", "s~2 add c1 1"),
        ("s/1 put t1 5 5", "s/1 put t1 6 5"),
    ],
    ids=["outcomes", "sessions", "intervals", "times"],
)
def test_digests_tell_whatever_replicas_have_in_common(this: str, that: str) -> None:
    """A difference that shows only later is a difference."""
    one, other = MemorySqlite(), MemorySqlite()
    decide(one, this)
    decide(other, that)
    assert digest(one) != digest(other)


def test_the_chain_covers_what_is_told_again() -> None:
    one, other = MemorySqlite(), MemorySqlite()
    for database, bundle in ((one, ("s/1 total", "s/1 total")), (other, ("s/1 total",))):
        decide(database, *bundle)
    assert opened(one).outcomes != opened(other).outcomes


# Dirty queries.


def test_a_dirty_query_sees_the_overlay_and_changes_nothing() -> None:
    database = MemorySqlite()
    apply(database, "append l1 1")
    before = digest(database)
    database.answer(Overlay(((chunk("s/1 append l1 2"),), (chunk("t/1 transfer a1 a2 500"), chunk("t/2 append l1 3")))))
    assert rows(database, "read l1", is_dirty=True) == "l1 1 2 3"
    assert rows(database, "read l1") == "l1 1"
    assert digest(database) == before


def test_what_is_decided_already_is_not_seen_twice() -> None:
    """The same request in two red bundles, or in one that turned green meanwhile through another."""
    database = MemorySqlite()
    decide(database, "s/1 append l1 1", "s~1 add c1 5")
    red = chunk("s/1 append l1 1", "s~1 add c1 5", "s/2 append l1 2", "s~2 add c1 1")
    database.answer(Overlay(((red,), (red,))))
    assert rows(database, "read l1", is_dirty=True) == "l1 1 2"
    assert rows(database, "count c1", is_dirty=True) == "c1 6"
    decide(database, "s/2 append l1 2")
    assert rows(database, "read l1", is_dirty=True) == "l1 1 2"


def test_a_query_changes_nothing_whatever_it_asks() -> None:
    database = MemorySqlite()
    apply(database, "append l1 1")
    before = digest(database)
    assert rows(database, "append l1 2") == "l1 1 2"
    assert rows(database, "add c1 5") == "ok"
    assert rows(database, "transfer a1 a2 101") == "refused"
    assert digest(database) == before
    assert apply(database, "read l1", "count c1") == ["l1 1", "c1 0"]


def test_of_an_overlay_is_seen_what_can_be_opened() -> None:
    database = MemorySqlite()
    database.answer(Overlay(((chunk("s/1 append l1 1"), b"nonsense"),)))
    assert rows(database, "read l1", is_dirty=True) == "l1 1"
    assert rows(database, "read l1") == "l1"


def test_who_asks_for_an_outcome_is_told_the_position_too() -> None:
    database = MemorySqlite()
    apply(database, "total")
    decide(database, "s/1 append l1 1")
    apply(database, "total")
    kept = Outcome(Verdict.DONE, b"l1 1", 2, 0, is_again=True)
    assert database.answer(Query(OutcomeOf("s", 1))) == Rows(3, b"", kept)


def test_only_a_dirty_question_for_an_outcome_sees_the_overlay() -> None:
    database = MemorySqlite()
    database.answer(Overlay(((chunk("s/1 append l1 1"),),)))
    assert outcome_of(database, "s", 1).verdict is Verdict.UNKNOWN
    dirty = ask(Rows, database, Query(OutcomeOf("s", 1), is_dirty=True))
    assert (dirty.position, dirty.outcome) == (0, Outcome(Verdict.DONE, b"l1 1", 1, 0, is_again=True))
