"""The client port: listens, and keeps an eye on who is connected.

Roles change in the order, while their users are connected: whoever loses one loses it within seconds, and whoever is no
user any more, or has another password, is sent away.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from functools import partial

from greenline.node.attendant import Attendant
from greenline.node.connection import Connection
from greenline.node.edge import Declined, Desk, Limits
from greenline.node.transport import Address
from greenline.node.users import Known, Users

_ROUNDS = 5
"""Roles are looked up so often after the order has grown: the state that is read may be a little behind it."""
_BACKLOG = 1024
_TOLD_AT_ONCE = 64
"""So many are told that there is no room for them; for more there is not even room to tell."""


class Clients:
    """Make it in a running event loop, and close it in the end."""

    def __init__(
        self, desk: Desk, users: Users, limits: Limits | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """Without `tls`, in clear."""
        self.refused: Counter[str] = Counter()
        """Who was not welcomed, or was sent away, by kind."""
        self._desk = desk
        self._users = users
        self._limits = limits or Limits()
        self.tls = tls
        """Of who comes from now on; keys may be rotated."""
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._seen: tuple[int, str | None] = (-1, None)
        self._rounds = 0
        self._looking = self._loop.call_later(self._limits.recheck_s, self._look_again)
        desk.when_green(self._on_green)

    @property
    def connected(self) -> int:
        return len(self._connections)

    async def listen(self, address: Address) -> Address:
        """Where it listens then: port 0 is any that is free. Raises OSError."""
        self._server = await self._loop.create_server(self._on_coming, *address, backlog=_BACKLOG)
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    async def close(self, reason: str = "this node is being stopped; connect to another") -> None:
        """Everybody is told, and has a moment to read it."""
        self._looking.cancel()
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.end(Declined("stopped", reason, is_retriable=True))
        while self._connections:
            await asyncio.wait([connection.is_gone for connection in self._connections])

    def _on_coming(self) -> Connection | _NoRoom:
        if len(self._connections) >= self._limits.connections + _TOLD_AT_ONCE:
            self.refused["busy"] += 1
            return _NoRoom()
        refusal: Declined | None = None
        if len(self._connections) >= self._limits.connections:
            why = f"{self._limits.connections} clients are connected, and no more are served; try another node"
            refusal = Declined("busy", why, is_retriable=True)
        connection = Connection(self._desk, self._users, self._limits, self.tls, refusal)
        self._connections.add(connection)
        connection.is_gone.add_done_callback(partial(self._on_gone, connection))
        return connection

    def _on_gone(self, connection: Connection, _: asyncio.Future[None]) -> None:
        self._connections.discard(connection)
        if connection.ended is not None:
            self.refused[connection.ended.kind] += 1

    def _on_green(self) -> None:
        for connection in self._connections:
            if connection.attendant is not None:
                connection.attendant.feeds.go_on()

    def _look_again(self) -> None:
        """Is everybody still there, and who they were? The second only if something may have changed."""
        self._looking = self._loop.call_later(self._limits.recheck_s, self._look_again)
        for connection in self._connections:
            connection.look_whether_left()
        now = self._desk.durable_green, self._users.credential
        if now != self._seen:
            self._seen, self._rounds = now, _ROUNDS
        welcomed = {each: each.attendant for each in self._connections if each.attendant is not None}
        if self._rounds and welcomed:
            self._rounds -= 1
            names = {attendant.known.user for attendant in welcomed.values()}
            self._users.current(names, partial(self._on_current, welcomed))

    def _on_current(self, welcomed: dict[Connection, Attendant], found: dict[str, Known]) -> None:
        """Only of those who were there when it was asked: whoever came later may be newer than what was found."""
        for connection, attendant in welcomed.items():
            user = attendant.known.user
            current = found.get(user)
            if current is not None and current.verifier == attendant.known.verifier:
                attendant.known = current
            else:
                why = f"{user!r} is no user any more, or has another password; connect again"
                connection.end(Declined("password", why))


class _NoRoom(asyncio.Protocol):
    """Somebody who is hung up on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
