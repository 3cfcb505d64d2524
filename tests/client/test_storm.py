"""A storm is a seed: nodes refuse, lose, keep silent, are cut off and end sessions while clients write."""

from __future__ import annotations

import asyncio
import random

import pytest

from greenline.client import Client, Error, IntegrityError, OutcomeUnknown, Refused, link
from greenline.replication import port
from tests.client.places import INSERT, TABLE, Stage, client, play
from tests.client.server import Cable, Server

WRITES = 300


async def write(db: Client, chance: random.Random, fates: dict[int, str], values: range) -> None:
    """Some at a time; every tenth breaks a constraint."""

    async def one(value: int) -> None:
        sql, parameters = (INSERT, (value,)) if value % 10 else ("INSERT INTO t (a, b) VALUES (0, ?)", (value,))
        try:
            written = await db.execute(sql, parameters, wait=chance.choice(["green", "accepted"]))
            await written.green()
            fates[value] = "done"
        except Error as error:
            fates[value] = type(error).__name__

    waiting: set[asyncio.Task[None]] = set()
    for value in values:
        waiting.add(asyncio.create_task(one(value)))
        if len(waiting) > chance.choice([1, 20, 200]):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*waiting)


async def trouble(stage: Stage, chance: random.Random, servers: list[Server], cables: list[Cable]) -> None:
    while True:
        await asyncio.sleep(chance.uniform(0.001, 0.02))
        server = chance.choice(servers)
        match chance.choice(["cut", "cut", "lose", "busy", "never", "mute", "expire", "ending", "leave"]):
            case "cut":
                chance.choice(cables).cut()
            case "lose":
                server.loses += 1
            case "busy":
                server.refuses.append(port.Refused(1, "too much to do"))
            case "never":
                server.refuses.append(port.Refused(1, "never", is_retriable=False))
            case "mute":
                server.is_mute = True
                await asyncio.sleep(chance.uniform(0.001, 0.02))
                server.is_mute = False
                chance.choice(cables).cut()
            case "expire":
                stage.cluster.sessions.expire(chance.randint(0, stage.cluster.position))
            case "ending":
                server.ending_before = chance.randint(0, stage.cluster.position)
            case "leave":
                server.is_primary = False
                await asyncio.sleep(chance.uniform(0.001, 0.02))
                server.join()


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_no_write_is_done_twice_and_what_is_told_is_true(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 0.05)

    async def story(stage: Stage) -> None:
        chance = random.Random(seed)
        servers = [await stage.server(name) for name in "pqr"]
        cables = [await stage.cable(server) for server in servers]
        fates: dict[int, str] = {}
        async with client(*cables) as first, client(*cables) as second:
            await first.together([(TABLE, ()), ("INSERT INTO t VALUES (0, -1)", ())])
            storm = asyncio.create_task(trouble(stage, chance, servers, cables))
            writers = [
                asyncio.create_task(write(db, chance, fates, range(begin, begin + WRITES)))
                for db, begin in ((first, 0), (second, 1000))
            ]
            await asyncio.wait([*writers, storm], return_when=asyncio.FIRST_COMPLETED, timeout=3)
            storm.cancel()
            await asyncio.wait([storm])
            for server in servers:
                server.is_mute, server.loses, server.ending_before = False, 0, None
                server.refuses.clear()
                server.join()
            for cable in cables:
                cable.cut()
            await asyncio.gather(*writers)

        assert len(fates) == 2 * WRITES
        found = [value for value in stage.written if value != -1]
        assert len(found) == len(set(found)), "done twice"
        for value, fate in fates.items():
            if fate == "done":
                assert value in found, f"{value} was told to be done"
            elif fate != OutcomeUnknown.__name__:
                assert fate in {IntegrityError.__name__, Refused.__name__}
                assert value not in found, f"{value} was told to have failed: {fate}"
        assert sum(fate == "done" for fate in fates.values()) > WRITES, "the storm is too strong to tell anything"

    play(story)
