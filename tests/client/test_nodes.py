"""The client at real nodes, each a process: killed, cut off, stopped, while it writes."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from greenline.cli.local import Local
from greenline.client import Client, Colour, IntegrityError, SerializationFailure
from tests.node.databases import client, databases, until_alone, until_primary

pytestmark = pytest.mark.slow

TABLE = "CREATE TABLE t (a INTEGER PRIMARY KEY, b)"
INSERT = "INSERT INTO t (b) VALUES (?)"


async def written(db: Client) -> list[object]:
    return [row[0] for row in await db.query("SELECT b FROM t ORDER BY a")]


def node_of(db: Client) -> str:
    assert db.component is not None
    return db.component.server


def test_whoever_serves_is_killed_and_stopped_and_every_write_happens_once_in_order(tmp_path: Path) -> None:
    async def story(local: Local) -> None:
        async with client(local) as db:
            await db.execute(TABLE)
            asked = [asyncio.create_task(db.execute(INSERT, (number,), timeout=60)) for number in range(2000)]
            await asked[200]
            victim = node_of(db)
            await asyncio.to_thread(local.kill, victim)
            await asked[1000]
            assert node_of(db) != victim

            frozen = node_of(db)
            await asyncio.to_thread(local.restart, victim)
            frozen_pid = local.pid(frozen)
            assert frozen_pid is not None
            os.kill(frozen_pid, signal.SIGSTOP)
            try:
                await asyncio.gather(*asked)
            finally:
                os.kill(frozen_pid, signal.SIGCONT)
            assert await written(db) == list(range(2000))

    with databases(tmp_path, "p q r") as local:
        asyncio.run(story(local))


def test_both_sides_of_a_partition_are_served_as_they_asked(tmp_path: Path) -> None:
    async def story(local: Local) -> None:
        async with client(local, at="p") as majority, client(local, at="r") as minority:
            await majority.execute(TABLE)
            local.cut("p q | r")
            await asyncio.to_thread(until_primary, local, "p q")
            await asyncio.to_thread(until_alone, local, "r")

            await majority.execute("INSERT INTO t VALUES (1, 'majority')")
            red = await minority.execute("INSERT INTO t VALUES (1, 'minority')", wait="accepted")
            many = [await minority.execute(INSERT, (number,), wait="accepted") for number in range(150)]
            assert red.colour is Colour.RED
            weak = await minority.query("SELECT count(*) FROM t", consistency="weak")
            assert (list(weak), weak.component.is_primary) == ([(0,)], False)

            local.heal()
            with pytest.raises(IntegrityError):
                await red.green()
            await asyncio.gather(*(each.green() for each in many))
            assert await written(majority) == ["majority", *range(150)]

    with databases(tmp_path, "p q r") as local:
        asyncio.run(story(local))


def test_transactions_at_all_nodes_happen_as_if_alone(tmp_path: Path) -> None:
    async def story(local: Local) -> None:
        async with client(local, at="p") as p, client(local, at="q") as q, client(local, at="r") as r:
            await p.together([(TABLE, ()), (INSERT, (0,))])
            assert [await written(db) for db in (q, r)] == [[0], [0]], "from here on they have seen it"
            stale = p.transaction()
            await stale.execute("SELECT b FROM t")
            await stale.execute("UPDATE t SET b = 100")

            async def add_one(db: Client) -> None:
                async with db.transaction() as tx:
                    ((count,),) = (await tx.execute("SELECT b FROM t")).rows
                    await tx.execute("UPDATE t SET b = ?", (count + 1,))

            async def again_and_again(db: Client) -> None:
                done = 0
                while done < 5:
                    try:
                        await add_one(db)
                        done += 1
                    except SerializationFailure:
                        await asyncio.sleep(0)

            await asyncio.gather(*map(again_and_again, (p, q, r)))
            assert await written(q) == [15]
            with pytest.raises(SerializationFailure):
                await stale.commit()

    with databases(tmp_path, "p q r") as local:
        asyncio.run(story(local))
