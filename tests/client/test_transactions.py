"""Interactive transactions: they see what they write, and happen as if alone, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from greenline.client import (
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    SerializationFailure,
    Transaction,
    transaction,
)
from tests.client.places import INSERT, TABLE, Stage, client, play


def test_a_transaction_sees_what_it_writes_and_nobody_else_does_until_it_is_committed() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            async with db.transaction() as tx:
                inserted = await tx.execute("INSERT INTO t (b) VALUES ('x') RETURNING a")
                assert inserted.rows == ((1,),)
                await tx.executemany(INSERT, [("y",), ("z",)])
                assert (await tx.execute("SELECT count(*) FROM t")).rows == ((3,),)
                assert stage.written == []
            assert stage.written == ["x", "y", "z"]
            assert stage.cluster.position == 2, "it is one action"

    play(story)


def test_what_was_read_and_has_changed_is_a_serialization_failure() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.together([(TABLE, ()), (INSERT, (10,))])
            tx = db.transaction()
            ((balance,),) = (await tx.execute("SELECT b FROM t WHERE a = 1")).rows
            await tx.execute("UPDATE t SET b = ? WHERE a = 1", (balance - 1,))

            await other.execute("UPDATE t SET b = 20 WHERE a = 1")
            with pytest.raises(SerializationFailure) as failure:
                await tx.commit()
            assert failure.value.position == 3
            assert stage.written == [20]

    play(story)


def test_a_phantom_is_found_while_the_transaction_goes_on() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.execute(TABLE)
            tx = db.transaction()
            assert (await tx.execute("SELECT * FROM t WHERE b = 'x'")).rows == ()
            await other.execute(INSERT, ("x",))
            with pytest.raises(SerializationFailure):
                await tx.execute(INSERT, ("y",))
            with pytest.raises(InterfaceError, match="over"):
                await tx.execute(INSERT, ("y",))
            assert stage.written == ["x"]

    play(story)


def test_a_write_that_fails_by_now_is_a_serialization_failure_and_no_broken_constraint() -> None:
    """It did not fail when it was tried: whoever begins anew may do something else."""

    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.execute(TABLE)
            at_commit, before = db.transaction(), db.transaction()
            await at_commit.execute("INSERT INTO t VALUES (1, 'x')")
            await before.execute("INSERT INTO t VALUES (1, 'x')")
            await other.execute("INSERT INTO t VALUES (1, 'y')")
            with pytest.raises(SerializationFailure):
                await at_commit.commit()
            with pytest.raises(SerializationFailure):
                await before.execute("SELECT 1")
            assert stage.written == ["y"]

    play(story)


def test_run_begins_anew_until_nobody_was_in_between() -> None:
    async def story(stage: Stage) -> None:
        server = await stage.server()
        async with client(server) as db, client(server) as other:
            await db.together([(TABLE, ()), (INSERT, (0,))])

            async def increment(tx: Transaction) -> int:
                ((count,),) = (await tx.execute("SELECT b FROM t")).rows
                await tx.execute("UPDATE t SET b = ?", (count + 1,))
                return int(count)

            before = await asyncio.gather(*(each.run(increment) for each in (db, other) * 5))
            assert sorted(before) == list(range(10))
            assert stage.written == [10]

    play(story)


def test_a_statement_that_fails_leaves_the_transaction_open() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1, 'x')")
                with pytest.raises(IntegrityError):
                    await tx.execute("INSERT INTO t VALUES (1, 'y')")
                await tx.execute("INSERT INTO t VALUES (2, 'z')")
            assert stage.written == ["x", "z"]

    play(story)


def test_what_is_rolled_back_or_only_reads_has_no_place_in_the_order() -> None:
    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            await db.execute(TABLE)
            tx = db.transaction()
            await tx.execute(INSERT, (1,))
            tx.rollback()
            async with db.transaction() as tx:
                await tx.execute("SELECT * FROM t")
            with pytest.raises(InterfaceError, match="over"):
                await tx.commit()
            assert stage.cluster.position == 1

    play(story)


def test_a_transaction_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "MOST_TRIED", 3)

    async def story(stage: Stage) -> None:
        async with client(await stage.server()) as db:
            tx = db.transaction()
            for _ in range(3):
                await tx.execute("SELECT 1")
            with pytest.raises(NotSupportedError, match="at most 3"):
                await tx.execute("SELECT 1")

    play(story)
