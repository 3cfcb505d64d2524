"""Apart: a partition with updates and dirty reads on both sides; what it holds is bounded by what was accepted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from tests.node.databases import client, until_primary

from benchmarks.database import sizes
from benchmarks.database.cluster import cluster, create, memory, size_of
from benchmarks.figures import Figure
from greenline.cli.local import Local
from greenline.kernel.identities import ProcId

ROW = "x" * 200
WAL_MB = 160
GROWN_MB = 400
READ_EVERY = 200


def measure() -> Iterator[Figure]:
    with cluster() as local:
        asyncio.run(create(local))
        before = {name: memory(local, name) for name in local.names}
        local.cut("p q | r")
        until_primary(local, "p q")
        written, red, reads = asyncio.run(_both(local))
        what = f"{sizes.APART_S:.0f} s apart"
        accepted = (written + red) * len(ROW) / 1e6
        for name in ("p", "r"):
            beside = f"{written:,} green, {red:,} red, {reads} dirty reads"
            wal = size_of(local, name, "*-wal")
            yield Figure(f"{what}: WAL of {name}", wal, "MB", WAL_MB, False, beside)
            grown = memory(local, name) - before[name]
            yield Figure(f"{what}: memory of {name}, grown by", grown, "MB", GROWN_MB + 4 * accepted, at_least=False)
            log = size_of(local, name, "*.segment")
            yield Figure(f"{what}: log of {name}", log, "MB", 64 + 4 * accepted, at_least=False)
        local.heal()
        begun = time.perf_counter()
        until_primary(local, "p q r")
        asyncio.run(_has_all(local, written + red))
        yield Figure(f"{what}: until all is green", time.perf_counter() - begun, "s")


async def _both(local: Local) -> tuple[int, int, int]:
    end = time.perf_counter() + sizes.APART_S
    (written, first), (red, second) = await asyncio.gather(
        _side(local, "p", "green", end), _side(local, "r", "accepted", end)
    )
    return written, red, first + second


async def _side(local: Local, name: ProcId, wait: str, end: float) -> tuple[int, int]:
    written = reads = 0
    async with client(local, name) as db:
        begun = time.perf_counter()
        while time.perf_counter() < end:
            await asyncio.sleep(max(0.0, begun + written / sizes.APART_RATE - time.perf_counter()))
            done = await asyncio.gather(
                *(db.execute("INSERT INTO inserted (text) VALUES (?)", (ROW,), wait=wait) for _ in range(20))
            )
            written += len(done)
            if written % READ_EVERY == 0:
                ((count,),) = (await db.query("SELECT count(*) FROM inserted", consistency="dirty")).rows
                assert count == written, f"{name} shows {count} rows of {written}"
                reads += 1
    return written, reads


async def _has_all(local: Local, rows: int) -> None:
    for name in local.names:
        async with client(local, name) as db:
            while (await db.query("SELECT count(*) FROM inserted")).rows != ((rows,),):
                await asyncio.sleep(0.1)
