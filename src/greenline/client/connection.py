"""One connection to one node: frames both ways, pipelined, without a task of its own.

It is open once it was welcomed, and over once `lost` is done, which says why. What is sent within a turn of the event
loop leaves in one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec

from greenline.access import wire
from greenline.client.errors import InterfaceError, Refused, Unreachable, refusal_of
from greenline.kernel.codec import Garbled

_DEAD_AFTER_MS = 10_000
"""What was sent and is not acknowledged by the other machine after so long, never will be."""


class Account(msgspec.Struct, frozen=True):
    """Who asks, and how a node proves that it is one."""

    user: str
    password: str
    ca: Path | None = None
    """The cluster's certificate. Without it nothing is encrypted."""

    def context(self) -> ssl.SSLContext | None:
        if self.ca is None:
            return None
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
        except OSError as error:
            raise InterfaceError(f"{self.ca} cannot be read as a certificate: {error}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def __repr__(self) -> str:
        return f"Account({self.user!r})"


class Connection(asyncio.Protocol):
    def __init__(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        self.address = address
        self.welcomed: asyncio.Future[wire.Welcome] = loop.create_future()
        self.lost: asyncio.Future[str] = loop.create_future()
        self.is_gone: asyncio.Future[None] = loop.create_future()
        """Nothing is left of it in the operating system."""
        self.on_answer: Callable[[wire.Answer], None] | None = None
        self.heard_at = loop.time()
        self._loop = loop
        self._frames = wire.Frames(wire.MOST_BYTES)
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []

    @property
    def is_welcome(self) -> bool:
        return self.welcomed.done() and not self.welcomed.cancelled() and self.welcomed.exception() is None

    @property
    def welcome(self) -> wire.Welcome:
        return self.welcomed.result()

    def send(self, message: wire.Request) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(wire.framed(message))

    def abandon(self, reason: str) -> None:
        """It is over from here on; what was not answered is not known."""
        if not self.lost.done():
            self.lost.set_result(reason)
        if not self.welcomed.done():
            self.welcomed.set_exception(Unreachable(f"{self.address}: {reason}"))
            self.welcomed.exception()  # nobody may be waiting any more, and asyncio would complain
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if (raw := transport.get_extra_info("socket")) is not None:
            _notice_death(raw)

    def data_received(self, data: bytes) -> None:
        self.heard_at = self._loop.time()
        try:
            for frame in self._frames.feed(data):
                self._hear(wire.answer_of(frame))
        except (Garbled, wire.TooLong) as error:
            self.abandon(f"it does not speak our protocol: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone.set_result(None)
        self.abandon(f"the connection was lost: {exc}" if exc else "the node closed the connection")

    # What follows.

    def _hear(self, answer: wire.Answer) -> None:
        if self.lost.done():
            return
        if isinstance(answer, wire.No) and answer.ticket == 0:
            if not self.welcomed.done():
                self.welcomed.set_exception(refusal_of(answer.kind, f"{self.address}: {answer.reason}"))
            self.abandon(answer.reason)
        elif not self.welcomed.done():
            self._expect_welcome(answer)
        elif self.on_answer is not None:
            self.on_answer(answer)

    def _expect_welcome(self, answer: wire.Answer) -> None:
        if not isinstance(answer, wire.Welcome):
            self.abandon("it does not speak our protocol: it began with something else than a welcome")
        elif answer.version != wire.VERSION:
            self.abandon(f"it speaks version {answer.version} of the protocol, and we speak {wire.VERSION}")
        else:
            self.welcomed.set_result(answer)

    def _flush(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


async def opened(address: str, account: Account, context: ssl.SSLContext | None, timeout: float) -> Connection:
    """Raises `Unreachable`, `Refused`, or `ssl.SSLCertVerificationError` if it is none of the cluster's nodes."""
    host, port = parted(address)
    loop = asyncio.get_running_loop()
    connection = Connection(address)
    try:
        async with asyncio.timeout(timeout):
            await loop.create_connection(
                lambda: connection, host, port, ssl=context, server_hostname=host if context else None
            )
            connection.send(wire.Hello(wire.VERSION, account.user, account.password))
            await connection.welcomed
    except ssl.SSLCertVerificationError as error:
        raise Refused(f"{address} is no node of this cluster: {error.verify_message}", kind="certificate") from error
    except TimeoutError:
        raise Unreachable(f"{address}: no answer within {timeout:g} s") from None
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(f"{address}: {error}") from error
    finally:
        if not connection.is_welcome:
            connection.abandon("given up")
    return connection


def parted(address: str) -> tuple[str, int]:
    """`host:port`, `[::1]:port`."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InterfaceError(f"{address!r} is no address of a node: write host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _notice_death(raw: socket.socket) -> None:
    """A machine that is gone says nothing: have the kernel ask."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": _DEAD_AFTER_MS}
    for name, value in options.items():
        if (option := getattr(socket, name, None)) is not None:
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, option, value)
