"""The HTTP port for clients: runs `web` on a socket, with TLS or without, and lets nobody hold it up.

uvicorn waits for ever for somebody who begins a request and does not end it, or never begins one. Here whoever asks
for nothing for a while is closed; whoever waits for an answer is not.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from greenline.node.edge import Limits
from greenline.node.transport import Address, family_of

_CLOSES_WITHIN_S = 1
_CLOSED = -1
"""What a closed socket says of its number."""
_SHAKING_HANDS = 64
"""So many may be at it, beyond those who are connected."""


class _Connection(H11Protocol):
    limits: Limits
    was_idle = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(self.limits.hello_s, self._look_whether_idle)
        if len(self.connections) > self.limits.http_connections:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _look_whether_idle(self) -> None:
        """Twice in a row: it asks for nothing, or takes long to say what."""
        is_idle = getattr(self.cycle, "response_complete", True)
        if is_idle and self.was_idle:
            self.transport.abort()
            return
        self.was_idle = is_idle
        self._look = self.loop.call_later(self.limits.hello_s, self._look_whether_idle)


class _Door(socket.socket):
    """A listening socket that lets in so many at once.

    uvicorn hears of a caller only after the TLS handshake, which whoever says nothing never ends: until it is given up
    it takes a file descriptor, and a node needs those for its own files.
    """

    def __init__(self, made: socket.socket, most: int) -> None:
        super().__init__(fileno=made.detach())
        self._most = most
        self._inside: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        came, address = super().accept()
        self._inside = [each for each in self._inside if each.fileno() != _CLOSED]
        if len(self._inside) >= self._most:
            came.close()
            raise BlockingIOError("one too many; who else waits is asked for in the next turn of the loop")
        self._inside.append(came)
        return came, address


class WebServer(uvicorn.Server):
    """Make it in a running event loop, open it, and close it in the end. The signals are the service's."""

    def __init__(self, app: Starlette, limits: Limits | None = None, tls: ssl.SSLContext | None = None) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            loop="none",
            http=type("_Connection", (_Connection,), {"limits": limits or Limits()}),
            ws="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,  # else anybody at this machine says where they are
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_CLOSES_WITHIN_S,
        )
        config.load()
        config.ssl = tls
        self._most = (limits or Limits()).http_connections + _SHAKING_HANDS
        super().__init__(config)
        self._over = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    def open(self, address: Address) -> Address:
        """Where it listens then: port 0 is any that is free. Raises OSError."""
        made = _Door(socket.create_server(address, family=family_of(address)), self._most)
        self._serving = asyncio.create_task(self.serve([made]))
        name = made.getsockname()
        return name[0], name[1]

    async def close(self) -> None:
        self.should_exit = True
        self._over.set()
        if self._serving is not None:
            await self._serving

    async def main_loop(self) -> None:
        """uvicorn's own wakes ten times a second to see whether it is over: an idle node would do little else."""
        await self._over.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
