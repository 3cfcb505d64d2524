"""A cluster for a while, what its nodes use, and a writer whose longest wait is noted."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.node.databases import client, until_primary

from greenline.cli.inserts import Inserting
from greenline.cli.local import Local, make
from greenline.cli.reach import reach
from greenline.kernel.identities import ProcId
from greenline.node.certificates import client_context
from greenline.node.config import Tracing
from greenline.replication.port import Level

CREATE = "CREATE TABLE inserted (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
BLOB_BYTES = 900_000
_TOGETHER = 8


@contextmanager
def cluster(names: str = "p q r") -> Iterator[Local]:
    with tempfile.TemporaryDirectory() as place:
        local = make(Path(place), tuple(names.split()), trace=Tracing.OFF)
        try:
            assert local.start_all() == []
            until_primary(local, names)
            yield local
        finally:
            Local(Path(place)).stop_all()


async def create(local: Local) -> None:
    async with client(local) as db:
        await db.execute(CREATE)
        await db.execute("CREATE TABLE blobs (id INTEGER PRIMARY KEY, data BLOB)")


async def insert(local: Local, names: str, actions: int) -> None:
    """So many rows, each an action of its own, as fast as these nodes take them."""
    reached = reach(local.place)
    context = None if reached.ca is None else client_context(reached.ca.read_bytes())
    load = Inserting(reached.user, reached.password, context)
    addresses = [local.configs[name].clients[name] for name in names.split()]
    await load.until(addresses, actions, Level.LOCAL)


async def fill(local: Local, size: int) -> None:
    """A database of about so many bytes, in few actions."""
    statement = f"INSERT INTO blobs (data) VALUES (randomblob({BLOB_BYTES}))"
    async with client(local) as db:
        for _ in range(0, size, BLOB_BYTES * _TOGETHER):
            await asyncio.gather(*(db.execute(statement) for _ in range(_TOGETHER)))


class Writer:
    """Somebody who writes all the time, a row after the other, and notes the longest wait."""

    def __init__(self, local: Local, at: ProcId) -> None:
        self._local = local
        self._at = at
        self._is_over = False
        self.written = 0
        self.longest = 0.0

    async def __aenter__(self) -> Writer:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await self._task

    async def _write(self) -> None:
        async with client(self._local, self._at) as db:
            while not self._is_over:
                begun = time.perf_counter()
                await db.execute("INSERT INTO inserted (text) VALUES ('w')")
                self.longest = max(self.longest, time.perf_counter() - begun)
                self.written += 1


def memory(local: Local, name: ProcId) -> int:
    """The most that it has ever held, in MB."""
    status = Path(f"/proc/{local.pid(name)}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def size_of(local: Local, name: ProcId, pattern: str) -> int:
    """Of the files of a node that are named so, in MB."""
    return sum(path.stat().st_size for path in local.configs[name].data.rglob(pattern)) // 1_000_000


async def until(condition: Callable[[], bool], patience: float = 600.0) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    while not await asyncio.to_thread(condition):
        assert time.perf_counter() < begun + patience, "it takes too long"
        await asyncio.sleep(0.05)
    return time.perf_counter() - begun
