"""Clients that insert rows as fast as they are answered: each row an action with an identity and an outcome of its own.

They speak the wire themselves, pipelined: what is measured is the cluster, and little of a client's library.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections import deque
from functools import partial

from greenline.access import wire
from greenline.kernel.actions import WINDOW, Action, Outcome, Verdict, pack
from greenline.kernel.statements import Statement, Work, encode
from greenline.node.transport import Address
from greenline.replication.port import Level

SQL = "INSERT INTO inserted (text) VALUES (?)"
ROW_BYTES = 200
BODIES = [
    encode(Work(1_700_000_000_000_000, 7, (Statement(SQL, (secrets.token_hex(ROW_BYTES // 2),)),))) for _ in range(1024)
]
"""Of different rows, each with that much in it."""
TOGETHER = WINDOW // 4
"""Actions in a frame: a part of what a session may have unanswered, so that it is never idle."""


class Session:
    """One session on a connection: so many frames of it are under way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        self.received = 0

    def next_actions(self) -> bytes:
        first = self.asked + 1
        self.asked += TOGETHER
        received = self.received
        bodies = [BODIES[number % len(BODIES)] for number in range(first, first + TOGETHER)]
        return pack(tuple([Action(self.name, number, body, received) for number, body in enumerate(bodies, first)]))


class Inserter(asyncio.Protocol):
    """A connection with some sessions."""

    def __init__(self, user: str, password: str, sessions: int, level: Level) -> None:
        self.done = 0
        self.latencies: list[float] = []
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.is_ending = False
        self._hello = wire.Hello(wire.VERSION, user, password)
        self._count = sessions
        self._level = level
        self._frames = wire.Frames(wire.MOST_BYTES)
        self._tickets = 0
        self._waiting: dict[int, tuple[Session, float]] = {}
        self._out: deque[bytes] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(wire.framed(self._hello))

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            match wire.answer_of(frame):
                case wire.Welcome(position=position):
                    for number in range(self._count):
                        session = Session(f"b{id(self):x}-{number}@{position}")
                        for _ in range(WINDOW // TOGETHER):
                            self._ask(session)
                case wire.Done(ticket, _, _, outcomes):
                    self._on_done(ticket, outcomes)
                case wire.No(_, kind, reason) | wire.Lost(kind, reason):
                    self._end(f"{kind}: {reason}")
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc or "closed"))

    def end(self) -> None:
        """Ask for no more."""
        self.is_ending = True
        if not self._waiting:
            self._end("")

    def _end(self, why: str) -> None:
        if not self.over.done():
            self.over.set_result(why)

    def _ask(self, session: Session) -> None:
        self._tickets += 1
        self._waiting[self._tickets] = session, time.perf_counter()
        self._out.append(wire.framed(wire.Write(self._tickets, TOGETHER, session.next_actions(), self._level)))

    def _on_done(self, ticket: int, outcomes: tuple[Outcome, ...]) -> None:
        session, asked_at = self._waiting.pop(ticket)
        if any(each.verdict is not Verdict.DONE or each.is_again for each in outcomes):
            self._end(f"an insert came to {next(each for each in outcomes if each.verdict is not Verdict.DONE)}")
            return
        self.latencies.append(time.perf_counter() - asked_at)
        self.done += len(outcomes)
        session.received += len(outcomes)
        if not self.is_ending:
            self._ask(session)
        elif not self._waiting:
            self._end("")


def _given(inserter: Inserter) -> Inserter:
    return inserter


class Inserting:
    """Inserters at all of these addresses."""

    def __init__(self, user: str, password: str, context: ssl.SSLContext | None) -> None:
        self._account = user, password
        self._context = context
        self._inserters: list[Inserter] = []

    @property
    def done(self) -> int:
        return sum(each.done for each in self._inserters)

    @property
    def latencies(self) -> list[float]:
        return sorted(each for inserter in self._inserters for each in inserter.latencies)

    async def until(self, addresses: list[Address], rows: int, level: Level, sessions: int = 16) -> None:
        """So many rows, and a few more that are under way then."""
        await self._connect(addresses, sessions, level)
        while self.done < rows:
            await self._pass(0.05)
        await self._end()

    async def run(self, addresses: list[Address], sessions: int, level: Level, warm: float, seconds: float) -> float:
        """Rows a second, after a while to get warm."""
        await self._connect(addresses, sessions, level)
        await self._pass(warm)
        for inserter in self._inserters:
            inserter.latencies.clear()
        before, begun = self.done, time.perf_counter()
        await self._pass(seconds)
        rate = (self.done - before) / (time.perf_counter() - begun)
        await self._end()
        return rate

    async def _connect(self, addresses: list[Address], sessions: int, level: Level) -> None:
        loop = asyncio.get_running_loop()
        for host, port in addresses:
            inserter = Inserter(*self._account, sessions, level)
            self._inserters.append(inserter)
            await loop.create_connection(
                partial(_given, inserter),
                host,
                port,
                ssl=self._context,
                server_hostname=host if self._context else None,
            )

    async def _end(self) -> None:
        for inserter in self._inserters:
            inserter.end()
        await asyncio.gather(*(inserter.over for inserter in self._inserters))

    async def _pass(self, seconds: float) -> None:
        await asyncio.wait([each.over for each in self._inserters], timeout=seconds, return_when="FIRST_COMPLETED")
        for inserter in self._inserters:
            if inserter.over.done():
                raise RuntimeError(f"an inserter has ended: {inserter.over.result()}")
