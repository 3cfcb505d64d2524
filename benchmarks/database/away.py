"""Away: a replica that misses much, and one that is new to a large database, while somebody goes on writing."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.database import sizes
from benchmarks.database.cluster import Writer, cluster, create, fill, insert, memory, until
from benchmarks.figures import Figure
from greenline.cli.local import Local
from greenline.kernel.identities import ProcId
from greenline.node.status import Status

LONGEST_STALL_S = 1.0
MOST_MB = 1500
"""A node may hold what it retains for others (`retain_bytes`), and little more."""


def _is_level(local: Local, name: ProcId, with_whom: ProcId) -> bool:
    one, other = local.status(name), local.status(with_whom)
    if not isinstance(one, Status) or not isinstance(other, Status):
        return False
    mine, others = one.standing, other.standing
    return mine is not None and others is not None and mine.is_primary and mine.green >= others.green - 100


def measure() -> Iterator[Figure]:
    with cluster() as local:
        asyncio.run(create(local))
        local.kill("r")
        asyncio.run(insert(local, "p q", sizes.ACTIONS))
        yield from asyncio.run(_come_back(local))
    with cluster() as local:
        asyncio.run(create(local))
        asyncio.run(fill(local, sizes.LARGE_BYTES))
        yield from asyncio.run(_join(local))


async def _come_back(local: Local) -> list[Figure]:
    async with Writer(local, "p") as writer:
        await until(lambda: writer.written > 10)
        writer.longest = 0.0
        begun = time.perf_counter()
        await asyncio.to_thread(local.restart, "r")
        await until(lambda: _is_level(local, "r", "p"))
        seconds = time.perf_counter() - begun
    return _figures(f"back after {sizes.ACTIONS:,} actions", seconds, writer, local, "r")


async def _join(local: Local) -> list[Figure]:
    command = [sys.executable, "-m", "greenline.cli.main", "join", "s", "--dir", str(local.place), "--within", "600"]
    async with Writer(local, "p") as writer:
        await until(lambda: writer.written > 10)
        writer.longest = 0.0
        begun = time.perf_counter()
        joining = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
        await until(lambda: _has_some(local))
        local.kill("q")  # perhaps its source: the transfer goes on with another
        assert await joining.wait() == 0
        seconds = time.perf_counter() - begun
    grown = Local(local.place)
    figures = _figures(f"new to {sizes.LARGE_BYTES / 1e9:.1f} GB", seconds, writer, grown, "s")
    shutil.rmtree(local.configs["q"].data)
    return figures


def _has_some(local: Local) -> bool:
    """Chunks have come."""
    return any(True for _ in (local.place / "data" / "s").rglob("staged/*"))


def _figures(what: str, seconds: float, writer: Writer, local: Local, name: ProcId) -> list[Figure]:
    beside = f"{writer.written} rows written meanwhile"
    return [
        Figure(f"{what}: until it is level", seconds, "s", None, True, beside),
        Figure(f"{what}: longest wait of a writer", writer.longest, "s", LONGEST_STALL_S, at_least=False),
        Figure(f"{what}: memory of the newcomer", memory(local, name), "MB", MOST_MB, at_least=False),
        Figure(f"{what}: memory of a source", memory(local, "p"), "MB", MOST_MB, at_least=False),
    ]
