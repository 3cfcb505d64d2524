"""Stories with servers and clients in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from greenline.client import Client, connect
from tests.client.server import PASSWORD, Cable, Cluster, Server

PATIENCE_S = 10.0
CREDENTIAL = "credential"
TABLE = "CREATE TABLE t (a INTEGER PRIMARY KEY, b)"
INSERT = "INSERT INTO t (b) VALUES (?)"


class Place(Protocol):
    """What has an address."""

    @property
    def address(self) -> str: ...


class Stage:
    """Takes down what it has put up."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self._servers: list[Server] = []
        self._cables: list[Cable] = []

    async def server(self, name: str = "p", *, has_tls: bool = False, action_bytes: int = 1 << 20) -> Server:
        server = await Server(self.cluster, name, has_tls=has_tls, action_bytes=action_bytes).open()
        self._servers.append(server)
        return server

    async def cable(self, server: Server) -> Cable:
        cable = await Cable(server.address).lay()
        self._cables.append(cable)
        return cable

    async def clear(self) -> None:
        for cable in self._cables:
            await cable.remove()
        for server in self._servers:
            await server.stop()
        self.cluster.db.close()

    @property
    def count(self) -> int:
        ((count,),) = self.cluster.rows("SELECT count(*) FROM t")
        return int(count)

    @property
    def written(self) -> list[object]:
        """What is in the table, in order."""
        return [row[0] for row in self.cluster.rows("SELECT b FROM t ORDER BY a")]


def play(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await story(stage)
        finally:
            await stage.clear()

    asyncio.run(whole())


def client(
    *places: Place, user: str = "ada", password: str = PASSWORD, ca: Path | None = None, within: float = 10.0
) -> Client:
    addresses = ",".join(place.address for place in places)
    return connect(addresses, user=user, password=password, ca=ca, connect_timeout=within)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)
