"""The admin port: a node's status, metrics and administration over HTTP, in the node's own loop.

What is read here is no secret. Whatever changes something needs a credential that is derived from the cluster's key,
and what carries keys is sealed besides, because HTTP travels in clear: a credential that somebody overheard opens
nothing. Bad input is answered with what to do.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from greenline.node.bootstrap import CannotJoin
from greenline.node.config import BadConfig, Checked, written
from greenline.node.envelope import credential
from greenline.node.faults import Faults, Ways
from greenline.node.invitation import BadToken
from greenline.node.life import Life, NotTaken
from greenline.node.metrics import CONTENT_TYPE, Metrics
from greenline.node.rotation import RotationRefused
from greenline.node.transport import Address, family_of

MOST_BYTES = 1 << 20
"""Of a body; keys and joins have a few hundred."""
MOST_CONNECTIONS = 64
"""At once; one more closes the oldest, so that who holds many keeps nobody out."""
LIVES_AT_MOST_S = 10.0
"""A connection: more than any question here takes."""
_CLOSES_WITHIN_S = 1

_Handler = Callable[[Request], Awaitable[Response]]
_T = TypeVar("_T")


class Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: list[str]
    ways: Ways = Ways.BOTH


class _No(Exception):
    """The answer is an error: its status, and what to do."""

    def __init__(self, status: int, because: str) -> None:
        super().__init__(because)
        self.status = status


class Admin:
    """What can be asked of one life."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._metrics = Metrics(lambda: life.status)
        self.app = Starlette(
            routes=[
                Route("/status", self._status),
                Route("/metrics", self._read_metrics),
                Route("/ready", self._ready),
                Route("/say", _checked(self._say), methods=["POST"]),
                Route("/cut", _checked(self._cut), methods=["POST"]),
                Route("/heal", _checked(self._heal), methods=["POST"]),
                Route("/faults", _checked(self._faults), methods=["POST"]),
                Route("/keys", _checked(self._keys), methods=["POST"]),
                Route("/join", _checked(self._join), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _elsewhere, Exception: self._broken},
        )

    # Reading.

    async def _status(self, _: Request) -> Response:
        return _json(200, self._life.status)

    async def _read_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def _ready(self, _: Request) -> Response:
        why_not = self._life.status.why_not_ready
        return _json(200, {"ready": True}) if why_not is None else _json(503, {"ready": False, "error": why_not})

    # Changing.

    async def _say(self, request: Request) -> Response:
        self._local_only(request)
        text = _decoded(await _body(request), Say, '{"text": "hello"}').text
        return _json(202, {"message": str(self._life.say(text.encode()))})

    async def _cut(self, request: Request) -> Response:
        self._local_only(request)
        cut = _decoded(await _body(request), Cut, '{"names": ["r"], "ways": "both"}, or "in", or "out"')
        self._life.cut(frozenset(cut.names), cut.ways)
        return _json(200, {"cut_off": sorted(cut.names), "ways": cut.ways})

    async def _heal(self, request: Request) -> Response:
        self._local_only(request)
        self._life.cut(frozenset())
        return _json(200, {"cut_off": []})

    async def _faults(self, request: Request) -> Response:
        self._local_only(request)
        wanted = _decoded(await _body(request), Faults, '{"log": "full", "database": null}')
        self._life.fail(wanted)
        return _json(200, wanted)

    async def _keys(self, request: Request) -> Response:
        self._authorized(request)
        kept = self._life.rotate(await _body(request))
        return _json(200, {"keys": sorted(kept.keyring.keys), "current": kept.keyring.current, "changes": kept.changes})

    async def _join(self, request: Request) -> Response:
        # No credential: who joins has no key yet. The body opens only with a token's secret.
        return Response(await self._life.admit(await _body(request)), media_type="application/octet-stream")

    async def _broken(self, request: Request, error: Exception) -> Response:
        """Our own mistake, or a disk that takes no file: the node goes on."""
        self._life.log.error("could not answer", path=request.url.path, because=repr(error))
        return _json(500, {"error": f"the node could not answer: {type(error).__name__}; look into its log"})

    def _local_only(self, request: Request) -> None:
        self._authorized(request)
        if not self._life.config.is_local:
            raise _No(403, "this is no node of a local cluster; write local = true into its file if it is one")

    def _authorized(self, request: Request) -> None:
        """Without a key there is no credential: who runs so has asked for it."""
        kept = self._life.kept
        if kept is None:
            return
        wanted = f"Bearer {credential(kept.keyring.keys[kept.keyring.current])}"
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), wanted.encode()):
            raise _No(
                401, "this needs the credential of the cluster's current key; use the greenline command with its --dir"
            )


def _checked(handler: _Handler) -> _Handler:
    """Whatever a caller can do wrong comes back as JSON."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except _No as no:
            return _json(no.status, {"error": str(no)})
        except (CannotJoin, BadToken) as no:
            return _json(403, {"error": str(no)})
        except RotationRefused as no:
            return _json(409, {"error": str(no)})
        except NotTaken as no:
            return _json(503, {"error": f"not taken: {no}"})
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


async def _elsewhere(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    there = "GET /status /metrics /ready, POST /say /cut /heal /faults /keys /join"
    return _json(error.status_code, {"error": f"there is no {request.method} {request.url.path}; there is {there}"})


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise _No(413, f"the body has more than {MOST_BYTES} bytes; send less")
    return bytes(body)


def _decoded(body: bytes, into: type[_T], example: str) -> _T:
    try:
        return msgspec.json.decode(body, type=into)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _No(400, f"the body does not fit: {error}; send {example}") from None


def _json(status: int, value: object) -> Response:
    return Response(msgspec.json.encode(value) + b"\n", status, media_type="application/json")


class _Connection(H11Protocol):
    """One connection, among the others that are open."""

    others: dict[_Connection, None]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end = self.loop.call_later(LIVES_AT_MOST_S, transport.abort)
        self.others[self] = None
        if len(self.others) > MOST_CONNECTIONS:
            next(iter(self.others)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        self.others.pop(self, None)
        super().connection_lost(exc)


def _protocol(open_ones: dict[_Connection, None]) -> type[_Connection]:
    """Of one server: its connections know of each other."""
    return type("_Connection", (_Connection,), {"others": open_ones})


class Server(uvicorn.Server):
    """uvicorn in our loop: the signals are the service's, and so is the log."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                loop="none",
                http=_protocol(dict[_Connection, None]()),
                ws="none",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_CLOSES_WITHIN_S,
            )
        )
        self._over = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._over.set()

    async def main_loop(self) -> None:
        """uvicorn's own wakes ten times a second to see whether it is over: an idle node would do little else."""
        await self._over.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(config: Checked, address: Address) -> socket.socket:
    made = socket.socket(family_of(address), socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        made.listen()
    except OSError as error:
        made.close()
        where = f"{config.path}: cannot listen at admin = {written(address)!r}"
        raise BadConfig(f"{where}: {error.strerror}; choose a free port of this machine") from None
    made.setblocking(False)
    return made
