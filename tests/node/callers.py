"""A client port with a desk behind it, and callers on real sockets who speak the wire, or something else."""

from __future__ import annotations

import asyncio
import resource
import secrets
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from greenline.access import wire
from greenline.access.passwords import SALT_BYTES, verifier
from greenline.kernel.actions import Action, pack
from greenline.kernel.statements import Question, Statement, Value, Work, encode
from greenline.node.certificates import ca_pem, client_context, server_context
from greenline.node.clients import Clients
from greenline.node.edge import Limits
from greenline.node.envelope import credential
from greenline.node.transport import Address
from greenline.node.users import OPERATOR, Users
from greenline.replication.port import Reads
from tests.node.desks import StubDesk

KEY = b"k" * 32
PASSWORD = "it rains"
PATIENCE_S = 20.0


def cheap(password: str) -> str:
    """A verifier that costs a test little."""
    return verifier(password, secrets.token_bytes(SALT_BYTES), n=16, p=1)


class House:
    """A client port on a free port of this machine, its users, and a desk that answers at once."""

    def __init__(self, limits: Limits, *, is_secure: bool) -> None:
        self.desk = StubDesk()
        self.desk.appoint("ann", "admin", cheap(PASSWORD))
        self.desk.appoint("will", "write", cheap(PASSWORD))
        self.desk.appoint("rita", "read", cheap(PASSWORD))
        self.limits = limits
        self.users = Users(self.desk, lambda: credential(KEY), limits)
        tls = server_context(KEY, "p", ["10.0.0.1"]) if is_secure else None
        self.clients = Clients(self.desk, self.users, limits, tls)
        self.address: Address = ("", 0)
        self.tls = client_context(ca_pem(KEY)) if is_secure else None

    async def call(self) -> Caller:
        return await Caller.at(self.address, self.tls)

    async def welcomed(self, user: str = "will", password: str = PASSWORD) -> Caller:
        caller = await self.call()
        answer = await caller.ask(wire.Hello(wire.VERSION, user, password))
        assert isinstance(answer, wire.Welcome), answer
        return caller

    async def operator(self) -> Caller:
        return await self.welcomed(OPERATOR, credential(KEY))


class Caller:
    """One connection of somebody outside."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._frames = wire.Frames(wire.MOST_BYTES)
        self._whole: list[bytes] = []

    @classmethod
    async def at(cls, address: Address, tls: ssl.SSLContext | None) -> Caller:
        return cls(*await asyncio.open_connection(*address, ssl=tls))

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.writer.transport.abort()

    def say(self, *requests: wire.Request) -> None:
        self.writer.write(b"".join(map(wire.framed, requests)))

    def say_bytes(self, data: bytes) -> None:
        self.writer.write(data)

    async def hear(self) -> wire.Answer:
        """The next answer; `EOFError` if there is none any more."""
        while not self._whole:
            data = await self._reader.read(1 << 20)
            if not data:
                raise EOFError
            self._whole.extend(self._frames.feed(data))
        return wire.answer_of(self._whole.pop(0))

    async def ask(self, request: wire.Request) -> wire.Answer:
        self.say(request)
        return await self.hear()

    async def is_told_no(self) -> wire.No:
        """The connection is over, for a reason."""
        no = await self.hear()
        assert isinstance(no, wire.No), no
        assert no.ticket == 0
        self.writer.close()
        return no


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def play(story: Callable[[House], Awaitable[None]], limits: Limits | None = None, *, is_secure: bool = True) -> None:
    async def live() -> None:
        house = House(limits or Limits(), is_secure=is_secure)
        house.address = await house.clients.listen(("127.0.0.1", 0))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await story(house)
        finally:
            await house.clients.close()
            house.users.close()

    asyncio.run(live())


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Somebody with a thousand connections needs as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def body(sql: str = "INSERT INTO t DEFAULT VALUES", *parameters: Value) -> bytes:
    return encode(Work(0, 0, (Statement(sql, parameters),)))


def write(ticket: int, *bodies: bytes, session: str = "c1@0", number: int = 1) -> wire.Write:
    actions = tuple(Action(session, number + offset, each) for offset, each in enumerate(bodies))
    return wire.Write(ticket, len(actions), pack(actions))


def read(ticket: int, sql: str = "SELECT 1", *parameters: Value) -> wire.Read:
    return wire.Read(ticket, encode(Question(0, 0, Statement(sql, parameters))), Reads.WEAK)
