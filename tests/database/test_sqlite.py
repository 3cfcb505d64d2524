"""The contract of a database adapter, kept by SQLite: positions, outcomes, digests, and what a crash leaves."""

from __future__ import annotations

import pytest

from greenline.database.sqlite import MemorySqlite
from greenline.kernel.actions import Action, pack
from greenline.kernel.database import (
    Applied,
    Apply,
    Commit,
    Committed,
    Digest,
    DigestOf,
    Open,
    Opened,
    Overlay,
    Query,
    Refused,
    Rows,
    SnapshotBegin,
)


def chunk(*operations: str) -> bytes:
    return pack(tuple(Action("s", number, each.encode()) for number, each in enumerate(operations, 1)))


def apply(database: MemorySqlite, position: int, *operations: str) -> list[str]:
    """Apply a bundle, one chunk; its outcomes."""
    answer = database.answer(Apply(position, (chunk(*operations),)))
    assert isinstance(answer, Applied), answer
    assert answer.position == position
    return [reply.decode() for reply in answer.replies]


def opened(database: MemorySqlite) -> Opened:
    answer = database.answer(Open())
    assert isinstance(answer, Opened)
    return answer


def digest(database: MemorySqlite) -> bytes:
    answer = database.answer(DigestOf())
    assert isinstance(answer, Digest)
    return answer.digest


def read(database: MemorySqlite, what: str, dirty: bool = False) -> str:
    answer = database.answer(Query(f"read {what}".encode(), dirty))
    assert isinstance(answer, Rows)
    return answer.rows.decode()


def test_every_operation_says_what_it_came_to() -> None:
    database = MemorySqlite()
    assert apply(database, 1, "append l1 3", "append l1 7", "read l1", "read l2") == ["l1 3", "l1 3 7", "l1 3 7", "l2"]
    assert apply(database, 2, "read r1", "write r1 9", "write r1 10", "read r1") == ["r1 -", "r1 9", "r1 10", "r1 10"]
    assert apply(database, 3, "transfer a1 a2 5", "total") == ["ok", "total 300"]


def test_an_action_that_fails_stops_no_other_and_leaves_nothing() -> None:
    database = MemorySqlite()
    outcomes = apply(
        database, 1, "transfer a1 a2 101", "transfer a1 a9 5", "append l1 1", "dance", "transfer a1 a1 101"
    )
    assert outcomes == ["refused", "refused", "l1 1", "no such operation", "refused"]
    assert apply(database, 2, "transfer a1 a2 100", "transfer a2 a3 200", "transfer a1 a2 1", "total") == [
        *("ok", "ok", "refused", "total 300")
    ]


def test_a_bundle_may_come_in_chunks() -> None:
    whole, parts = MemorySqlite(), MemorySqlite()
    apply(whole, 1, "append l1 1", "append l1 2")
    answer = parts.answer(Apply(1, (chunk("append l1 1"), chunk("append l1 2"))))
    assert isinstance(answer, Applied)
    assert answer.replies == (b"l1 1", b"l1 1 2")
    assert opened(parts) == opened(whole)


def test_a_position_is_neither_skipped_nor_repeated() -> None:
    database = MemorySqlite()
    apply(database, 1, "append l1 1")
    for position in (0, 1, 3):
        assert isinstance(database.answer(Apply(position, (chunk("append l1 2"),))), Refused)
    assert read(database, "l1") == "l1 1"
    assert isinstance(database.answer(Commit(2)), Refused)
    assert database.answer(Commit(1)) == Committed(1, durable=0)
    assert database.answer(Commit(1)) == Committed(1, durable=0)
    assert isinstance(database.answer(Commit(0)), Refused)


def test_a_bundle_that_cannot_be_opened_is_refused_as_a_whole() -> None:
    database = MemorySqlite()
    apply(database, 1, "append l1 1")
    before = opened(database)
    assert isinstance(database.answer(Apply(2, (chunk("append l1 2"), b"nonsense"))), Refused)
    assert opened(database) == before
    assert apply(database, 2, "read l1") == ["l1 1"]
    assert database.answer(Commit(2)) == Committed(2, durable=0)


def test_what_is_beyond_a_commit_stays_open() -> None:
    database = MemorySqlite()
    for position in (1, 2, 3):
        apply(database, position, f"append l1 {position}")
    before = opened(database)
    assert database.answer(Commit(2)) == Committed(2, durable=0)
    assert opened(database) == before
    assert read(database, "l1") == "l1 1 2 3"
    database.kill()
    assert read(database, "l1") == "l1 1 2"
    assert apply(database, 3, "append l1 3") == ["l1 1 2 3"]
    assert opened(database) == before


def test_a_kill_keeps_what_was_committed_and_loses_the_rest() -> None:
    database = MemorySqlite()
    apply(database, 1, "append l1 1")
    database.answer(Commit(1))
    committed = opened(database)
    apply(database, 2, "append l1 2")
    database.kill()
    assert opened(database) == committed
    database.kill()
    assert opened(database) == committed


def test_a_power_loss_may_lose_commits_but_never_what_was_called_durable() -> None:
    database = MemorySqlite(image_every=2)
    durable = []
    for position in range(1, 6):
        apply(database, position, f"append l1 {position}")
        answer = database.answer(Commit(position))
        assert isinstance(answer, Committed)
        durable.append(answer.durable)
    assert durable == [0, 2, 2, 4, 4]
    database.lose_power()
    assert opened(database).position == opened(database).durable == 4
    assert apply(database, 5, "append l1 50") == ["l1 1 2 3 4 50"]
    database.lose_power()
    assert read(database, "l1") == "l1 1 2 3 4"


@pytest.mark.parametrize("crash", [MemorySqlite.kill, MemorySqlite.lose_power])
def test_a_new_one_survives_a_crash_as_well(crash: object) -> None:
    database = MemorySqlite()
    apply(database, 1, "write r1 1")
    assert callable(crash)
    crash(database)
    assert opened(database) == opened(MemorySqlite())


def test_digests_are_equal_exactly_if_the_states_are() -> None:
    one, other = MemorySqlite(image_every=1), MemorySqlite(image_every=9)
    for position in (1, 2):
        for database in (one, other):
            apply(database, position, f"append l1 {position}", "transfer a1 a3 70")
    one.answer(Commit(1))
    assert digest(one) == digest(other), "what is committed and what is open makes no difference"
    assert opened(one).outcomes == opened(other).outcomes
    apply(one, 3, "read l1")
    apply(other, 3, "total")
    assert opened(one).outcomes != opened(other).outcomes, "the chain covers outcomes that change nothing"
    assert digest(one) != digest(other)


def test_a_dirty_query_sees_the_red_bundles_and_changes_nothing() -> None:
    database = MemorySqlite()
    apply(database, 1, "append l1 1")
    before = digest(database)
    database.answer(Overlay((chunk("append l1 2"), chunk("transfer a1 a2 500", "append l1 3"))))
    assert read(database, "l1", dirty=True) == "l1 1 2 3"
    assert read(database, "l1") == "l1 1"
    assert digest(database) == before


def test_it_gives_no_snapshots_yet_and_says_so() -> None:
    assert isinstance(MemorySqlite().answer(SnapshotBegin()), Refused)
