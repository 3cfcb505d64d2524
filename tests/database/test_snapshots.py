"""Snapshots: what they hold, what travels, and how another database becomes what they say, or stays what it was."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.database import snapshots
from greenline.database.memory import MemorySqlite
from greenline.database.procedures import PROCEDURES
from greenline.database.snapshots import FULL
from greenline.kernel.actions import digest_of
from greenline.kernel.database import (
    Activate,
    Chunk,
    Compare,
    Expire,
    Lacks,
    Opened,
    Restore,
    SnapshotChunk,
    SnapshotEnd,
    Stage,
    Staged,
)
from tests.database.asking import (
    apply,
    ask,
    chunks_of,
    commit,
    decide,
    digest,
    hold,
    opened,
    rows,
    send,
    verdicts,
    why_refused,
)

DEPOSIT = Activate("deposit", 1, PROCEDURES[0].digest)


def lived_in(bundles: int = 12) -> MemorySqlite:
    """A database with something in each of its tables, all of it committed."""
    database = MemorySqlite()
    for n in range(bundles):
        system = (Expire(2), DEPOSIT) if n == 3 else ()
        s = f"s{n % 5}@{n}"
        decide(
            database,
            *(f"{s}/1 append l{n % 3} {n}", f"{s}/2 write r{n} {n}", f"{s}/3 dance", f"{s}~{n} add c{n % 4} {n}"),
            *(f"{s}~{n + 2} put t{n % 2} {n} {n}", f"{s}~1 transfer a1 a2 5"),
            system=system,
        )
    commit(database)
    return database


def restored(source: MemorySqlite, target: MemorySqlite, basis: bytes = b"") -> Opened:
    held, _ = send(source, target)
    return ask(Opened, target, Restore(held.position, held.digests, basis))


# What is held.


def test_a_snapshot_is_of_what_is_committed() -> None:
    database = lived_in()
    before = chunks_of(database)
    apply(database, "append l1 99")
    state = digest(database)
    assert hold(database).position == database.committed == database.position - 1
    assert chunks_of(database) == before
    assert digest(database) == state, "what is open is open as before"
    commit(database)
    assert chunks_of(database) != before


def test_a_snapshot_stays_what_it_was_while_it_is_held() -> None:
    database = lived_in()
    held = hold(database)
    apply(database, "append l1 99", "transfer a1 a2 7")
    commit(database)
    for number, each in enumerate(held.digests):
        assert digest_of(ask(Chunk, database, SnapshotChunk(held.position, number)).data) == each


def test_a_snapshot_is_let_go_for_another_at_the_end_and_by_a_crash() -> None:
    database = lived_in()
    held = hold(database)
    assert "no chunk" in why_refused(database, SnapshotChunk(held.position, len(held.digests)))
    assert "no chunk" in why_refused(database, SnapshotChunk(held.position, -1))
    apply(database, "total")
    commit(database)
    later = hold(database)
    assert f"no snapshot of position {held.position}" in why_refused(database, SnapshotChunk(held.position, 0))
    assert database.answer(SnapshotEnd()) == opened(database)
    assert "is held" in why_refused(database, SnapshotChunk(later.position, 0))
    for crash in (database.kill, database.lose_power):
        later = hold(database)
        crash()
        assert "is held" in why_refused(database, SnapshotChunk(later.position, 0))


def test_chunks_are_bounded_and_the_state_has_several() -> None:
    database = MemorySqlite(chunk_rows=2)
    for n in range(30):
        apply(database, *(f"write r{10 * n + m} 1" for m in range(10)))
    commit(database)
    _, parts = snapshots.opened(chunks_of(database))
    sizes = [len(part.rows) for part in parts if part.table == "registers"]
    assert sum(sizes) == 300
    assert max(sizes) == FULL * 2
    assert len(sizes) > 75


def test_equal_parts_of_equal_states_are_equal_chunks_wherever_they_stand() -> None:
    """One row more at the beginning of a table, and many bundles later: nearly all is as before."""
    database = MemorySqlite(chunk_rows=4)
    apply(database, *(f"write r{n} 1" for n in range(50)))
    apply(database, *(f"write r{n} 1" for n in range(50, 100)))
    commit(database)
    before = set(chunks_of(database))
    decide(database, system=(Expire(2),))
    apply(database, "write r0 2", "write r00 3")
    commit(database)
    after = set(chunks_of(database))
    assert len(before - after) < len(before) / 2, "sessions and their outcomes changed, and the first registers"
    assert 1 <= len(after - before) <= 7


def test_replicas_that_came_there_in_different_ways_have_the_same_chunks() -> None:
    """One was restored, and one has lived through crashes; pages would differ."""
    one, other, third = lived_in(), MemorySqlite(), lived_in()
    apply(third, "write r77 77")
    third.kill()
    restored(one, other)
    for database in (one, other, third):
        apply(database, "append l1 5")
        commit(database)
    assert hold(one) == hold(other) == hold(third)


# How another becomes the same.


def test_another_database_becomes_the_same_in_one_step() -> None:
    """Also with what the digest does not tell: it goes on alike, knows who has asked already, and whom not to trust."""
    source, target = lived_in(), MemorySqlite()
    answer = restored(source, target, basis=b"roster")
    assert answer == Opened(source.position, opened(source).outcomes, durable=source.position, basis=b"roster")
    assert digest(target) == digest(source)
    assert (target.position, target.committed) == (source.position, source.position)
    assert opened(target).basis == b"roster"
    for database in (source, target):
        repeated = ("s1@11/2 write r1 77", "s1@11~11 add c3 77", "new/1 total", "s1@11/4 call deposit a1 1")
        assert verdicts(database, *repeated) == "again again expired done"
    assert opened(target).outcomes == opened(source).outcomes
    assert digest(target) == digest(source)


def test_whatever_a_database_held_is_gone() -> None:
    source, target = lived_in(4), lived_in(9)
    decide(target, "x/1 write r77 77", "x~1 add c77 77", "x/2 put t77 7 7", "x/3 append l77 7")
    commit(target)
    apply(target, "write r78 78")
    held, _ = send(source, target)
    stray = b"of another snapshot"
    target.answer(Stage(stray))
    ask(Opened, target, Restore(held.position, held.digests, b""))
    assert digest(target) == digest(source)
    assert rows(target, "read r77") == "r77 -"
    assert (target.position, target.committed) == (4, 4)
    assert ask(Lacks, target, Compare((digest_of(stray),))).numbers == (0,), "what was staged is gone as well"
    assert "is held" in why_refused(target, SnapshotChunk(9, 0))


@pytest.mark.parametrize("crash", [MemorySqlite.kill, MemorySqlite.lose_power])
def test_a_restored_state_survives_everything_at_once(crash: object) -> None:
    source, target = lived_in(), MemorySqlite(image_every=9)
    apply(target, "write r1 1")
    commit(target)
    before = restored(source, target, basis=b"roster")
    assert callable(crash)
    crash(target)
    assert opened(target) == before
    assert digest(target) == digest(source)
    apply(target, "total")
    commit(target)
    target.lose_power()
    assert opened(target) == before, "and commits are counted anew"


def test_a_basis_stays_until_the_next_and_is_not_part_of_the_state() -> None:
    source, target = lived_in(), MemorySqlite(image_every=1)
    restored(source, target, basis=b"one")
    for database in (source, target):
        apply(database, "append l1 5")
        commit(database)
    assert opened(target).basis == b"one"
    assert digest(target) == digest(source)
    assert hold(target) == hold(source)
    target.lose_power()
    assert opened(target).basis == b"one"
    restored(source, target, basis=b"two")
    assert opened(target).basis == b"two"


OPERATIONS = st.sampled_from(["append l1 3", "append l2 4", "write r1 5", "write r2 6", "add c1 7"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(OPERATIONS, max_size=5), max_size=8), st.integers(1, 9), st.integers(0, 8))
def test_any_state_travels(bundles: list[list[str]], chunk_rows: int, already: int) -> None:
    """To one that has some of it already, and has gone another way since."""
    source, target = MemorySqlite(chunk_rows=chunk_rows), MemorySqlite(chunk_rows=chunk_rows)
    for number, bundle in enumerate(bundles):
        for database in (source, target)[: 2 if number < already else 1]:
            apply(database, *bundle)
            commit(database)
    apply(target, "write r1 9", "append l9 9")
    commit(target)
    assert restored(source, target).position == source.position
    assert digest(target) == digest(source)


# What travels.


def test_what_is_there_already_need_not_travel() -> None:
    """A source dies when half of its chunks are there; the next one stands elsewhere, and sends the rest."""
    one, other, target = lived_in(), lived_in(), MemorySqlite()
    held = hold(one)
    half = len(held.digests) // 2
    for number in range(half):
        data = ask(Chunk, one, SnapshotChunk(held.position, number)).data
        assert target.answer(Stage(data)) == Staged(digest_of(data))
    target.kill()

    apply(other, "write r3 33")
    commit(other)
    later, travelled = send(other, target)
    assert later.position == held.position + 1
    assert travelled <= len(later.digests) - half + 5, "the header, the register, and the session of who wrote it"
    assert ask(Lacks, target, Compare(later.digests)) == Lacks(())
    ask(Opened, target, Restore(later.position, later.digests, b""))
    assert digest(target) == digest(other)


def test_one_that_was_cut_off_lacks_only_what_has_changed() -> None:
    """Its own state counts, as far as it is committed; also what is open there is as open afterwards."""
    source, target = lived_in(), lived_in()
    apply(source, "write r3 33")
    commit(source)
    apply(target, "write r4 44")
    state = digest(target)
    held = hold(source)
    numbers = ask(Lacks, target, Compare(held.digests)).numbers
    assert 0 in numbers, "the header"
    assert len(numbers) <= 5
    assert digest(target) == state
    ours = tuple(chunks_of(target))
    assert ask(Lacks, target, Compare(ours)) == Lacks(())
    _, travelled = send(source, target)
    assert travelled == len(numbers)
    ask(Opened, target, Restore(held.position, held.digests, b""))
    assert digest(target) == digest(source)


def test_nothing_travels_to_an_equal() -> None:
    assert send(lived_in(), lived_in())[1] == 0


def test_a_power_loss_takes_what_was_staged() -> None:
    source, target = lived_in(), MemorySqlite()
    held, _ = send(source, target)
    target.kill()
    assert ask(Lacks, target, Compare(held.digests)) == Lacks(())
    target.lose_power()
    assert len(ask(Lacks, target, Compare(held.digests)).numbers) > len(held.digests) / 2


# What is refused: then it stands where it stood.


def refusal(target: MemorySqlite, position: int, digests: tuple[bytes, ...]) -> str:
    before, state, there = opened(target), digest(target), target.committed
    reason = why_refused(target, Restore(position, digests, b"never"))
    assert (opened(target), digest(target), target.committed) == (before, state, there)
    return reason


def test_a_snapshot_that_is_not_whole_is_refused_and_may_be_completed() -> None:
    source, target = lived_in(), MemorySqlite()
    apply(target, "write r1 1")
    chunks = chunks_of(source)
    digests, position = tuple(chunks), source.position
    assert len(digests) > 5
    for number, data in enumerate(chunks.values()):
        if number != 3:
            target.answer(Stage(data))
    assert refusal(target, position, digests) == f"chunks 3 of {len(digests)} are lacking"
    target.answer(Stage(chunks[digests[3]]))
    assert "do not belong together" in refusal(target, position, (*digests[:3], *digests[4:]))
    assert "do not belong together" in refusal(target, position, (digests[0], digests[2], digests[1], *digests[3:]))
    assert "no chunks" in refusal(target, position, digests[1:])
    assert "no chunks" in refusal(target, position, ())
    assert f"position {position}" in refusal(target, position + 1, digests)
    assert ask(Opened, target, Restore(position, digests, b"")).position == position
    assert digest(target) == digest(source)


def test_chunks_that_are_garbled_are_refused() -> None:
    """A header that fits is made for each; what it names is not what it should be."""
    target = MemorySqlite()
    apply(target, "write r1 1")
    for part, because in (
        (b"nonsense", "no chunks"),
        (msgspec.msgpack.encode(["stands", [[7, b"", b""]]]), "no table stands"),
        (msgspec.msgpack.encode(["registers", [["r1", 1, 1]]]), "not of the table registers"),
        (msgspec.msgpack.encode(["registers", [["r1", 1], ["r1", 2]]]), "not of the table registers"),
        (msgspec.msgpack.encode(["registers", [["r1", 2**64 - 1]]]), "not of the table registers"),
        (msgspec.msgpack.encode(["registers", [["r1", [1]]]]), "not of the table registers"),
        (msgspec.msgpack.encode(["accounts", [["a1", -1]]]), "not of the table accounts"),
    ):
        header = msgspec.msgpack.encode([5, bytes(16), digest_of(digest_of(part))])
        for data in (header, part):
            target.answer(Stage(data))
        assert because in refusal(target, 5, (digest_of(header), digest_of(part)))
    assert apply(target, "read r1") == ["r1 1"]
