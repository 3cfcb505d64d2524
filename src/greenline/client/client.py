"""The client: SQL on a replicated database, from asyncio.

    async with connect("p.example:7420,q.example:7420", user="ada", password=secret, ca=Path("ca.pem")) as db:
        await db.execute("INSERT INTO t VALUES (?)", (1,))
        rows = await db.query("SELECT count(*) FROM t", consistency="session")

It finds a node by itself, goes to another when that one is gone, and asks again for all that is unanswered: every
write happens once. What each answer promises is in docs/semantics.md.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from greenline.access import wire
from greenline.client import work
from greenline.client.admin import Admin
from greenline.client.answers import Rows, Written, result_of, written_by
from greenline.client.asked import Asked, Identity
from greenline.client.connection import Account
from greenline.client.errors import (
    DataError,
    InterfaceError,
    InternalError,
    OutcomeUnknown,
    SerializationFailure,
    TimedOut,
)
from greenline.client.finding import Finder
from greenline.client.link import Link
from greenline.client.log import follow
from greenline.client.transaction import Transaction
from greenline.client.work import Given
from greenline.kernel.actions import DECIDED, Outcome, OutcomeOf, Verdict
from greenline.kernel.statements import Statement
from greenline.replication.port import Level, Reads, Where

_ATTEMPTS = 20
_T = TypeVar("_T")


def connect(
    addresses: str,
    *,
    user: str,
    password: str,
    ca: Path | None = None,
    connect_timeout: float = 10.0,
    roams: bool = True,
) -> Client:
    """To be opened by `async with`. Without `ca`, the cluster's certificate, nothing is encrypted.

    `roams`: to any node of the cluster; without, only these addresses are asked, also in a partition.
    """
    return Client(Finder(addresses, Account(user, password, ca), roams), connect_timeout)


class Client:
    def __init__(self, finder: Finder, connect_timeout: float) -> None:
        self._link = Link(finder)
        self._connect_timeout = connect_timeout
        self.admin = Admin(self._link.questions, self._link.check)

    async def open(self) -> None:
        """Raises `Unreachable`, `Unauthorised` or another `Refused`."""
        await self._link.open(self._connect_timeout)

    async def close(self) -> None:
        """What is accepted happens all the same; of what is on its way nobody will know."""
        await self._link.close()

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def address(self) -> str | None:
        """Of the node that it is at; None while it looks for one."""
        return self._link.address

    @property
    def component(self) -> Where | None:
        """As the last answer had it."""
        return self._link.where

    @property
    def seen(self) -> int:
        """The highest position that it was told of: what `session` queries see at least."""
        return self._link.seen

    # Writes.

    async def execute(
        self,
        sql: str,
        parameters: Given = (),
        *,
        level: str = "local",
        wait: str = "green",
        timeout: float | None = None,
    ) -> Written:
        """One statement as an action. Raises its error if it fails.

        `wait="accepted"`: until it is safe at one replica, and will be ordered; `green()` of the answer waits further.
        """
        return await self._write((work.statement(sql, parameters),), level, wait, timeout)

    async def together(
        self,
        statements: Iterable[tuple[str, Given]],
        *,
        level: str = "local",
        wait: str = "green",
        timeout: float | None = None,
    ) -> Written:
        """Several statements as one action: all of them, or none."""
        several = tuple(work.statement(sql, parameters) for sql, parameters in statements)
        if not several:
            raise InterfaceError("an action needs a statement")
        return await self._write(several, level, wait, timeout)

    async def batch(
        self, statements: Iterable[tuple[str, Given]], *, level: str = "local", timeout: float | None = None
    ) -> list[Written]:
        """Each statement as an action of its own, all at once, in this order. Look at `error` of each."""
        at = work.moment()
        bodies = [work.body((work.statement(sql, parameters),), at) for sql, parameters in statements]
        if not bodies:
            return []
        return await self.outcomes(self._ask(bodies, _level(level), tell_taken=False), timeout=timeout)

    async def executemany(
        self, sql: str, rows: Iterable[Given], *, level: str = "local", timeout: float | None = None
    ) -> int:
        """The same statement for each of these, an action each: how many rows were changed. Raises the first error;
        the others have happened."""
        written = await self.batch([(sql, row) for row in rows], level=level, timeout=timeout)
        return sum(each.changes for each in written)

    async def outcome(self, of: Asked | Identity, *, timeout: float | None = None) -> Written:
        """What became of a write that was not waited for (`TimedOut.handle`), or whose identity somebody knows.

        Raises its error if it failed, and `OutcomeUnknown` if it is not decided, or nobody can tell.
        """
        if isinstance(of, Asked):
            (written,) = await self.outcomes(of, timeout=timeout)
            return _checked(written)
        asked = OutcomeOf(of.session, of.number)
        answer = await self._read(None, Reads.STRICT, 0, is_patient=True, timeout=timeout, outcome_of=asked)
        outcome = answer.outcome or Outcome(Verdict.UNKNOWN)
        if outcome.verdict not in DECIDED:
            raise OutcomeUnknown(f"{of} is {outcome.verdict}", of)
        return _checked(Written(of.session, of.number, answer.where, Level.LOCAL, outcome))

    async def outcomes(self, of: Asked, *, timeout: float | None = None) -> list[Written]:
        """The same for a batch."""
        await self._until(of, of.until_green, timeout)
        return written_by(of)

    async def write(
        self, body: bytes, *, level: str = "local", wait: str = "green", timeout: float | None = None
    ) -> Written:
        """An action whose body is packed already (`kernel.statements`)."""
        if wait not in {"green", "accepted"}:
            raise InterfaceError(f"wait={wait!r}: write 'green' or 'accepted'")
        asked = self._ask([body], _level(level), tell_taken=wait == "accepted")
        await self._until(asked, asked.until_green if wait == "green" else asked.until_taken, timeout)
        (written,) = written_by(asked)
        return _checked(written)

    async def _write(self, statements: tuple[Statement, ...], level: str, wait: str, timeout: float | None) -> Written:
        return await self.write(work.body(statements, work.moment()), level=level, wait=wait, timeout=timeout)

    def _ask(self, bodies: list[bytes], level: Level, *, tell_taken: bool) -> Asked:
        self._link.check()
        if (longest := max(map(len, bodies))) > self._link.statement_bytes:
            raise DataError(f"an action of {longest} bytes: at most {self._link.statement_bytes} are taken")
        asked = Asked(bodies, level, tell_taken)
        self._link.writes.ask(asked)
        return asked

    async def _until(self, asked: Asked, reached: Callable[[], Awaitable[None]], timeout: float | None) -> None:
        try:
            if timeout is None:
                await reached()
            else:
                async with asyncio.timeout(timeout):
                    await reached()
        except TimeoutError:
            if self._link.writes.withdraw(asked):
                raise TimedOut(f"it could not be sent within {timeout:g} s: nothing came of it") from None
            raise TimedOut(f"no answer within {timeout:g} s: it may still happen; ask for its outcome", asked) from None
        except asyncio.CancelledError:
            self._link.writes.withdraw(asked)
            raise

    # Queries.

    async def query(
        self,
        sql: str,
        parameters: Given = (),
        *,
        consistency: str = "strict",
        patient: bool = True,
        timeout: float | None = None,
    ) -> Rows:
        """A statement that changes nothing. `patient=False`: rather be `Refused` than wait for a primary component."""
        request = work.question(work.statement(sql, parameters))
        answer = await self._read(request, _reads(consistency), self._link.seen, is_patient=patient, timeout=timeout)
        result = result_of(answer)
        return Rows(result.columns, result.rows, answer.position, answer.reds, answer.reads, answer.where)

    async def ask(self, request: bytes, *, consistency: str = "session", timeout: float | None = None) -> wire.Rows:
        """A query that is packed already (`kernel.statements`)."""
        return await self._read(request, _reads(consistency), self._link.seen, is_patient=True, timeout=timeout)

    async def _read(
        self,
        request: bytes | None,
        reads: Reads,
        after: int,
        *,
        is_patient: bool,
        timeout: float | None,
        outcome_of: OutcomeOf | None = None,
    ) -> wire.Rows:
        self._link.check()
        try:
            async with asyncio.timeout(timeout):
                answer = await self._link.questions.ask(
                    lambda ticket: wire.Read(ticket, request, reads, after, is_patient, outcome_of)
                )
        except TimeoutError:
            raise TimedOut(f"no answer within {timeout:g} s; it changes nothing, and may be asked again") from None
        if not isinstance(answer, wire.Rows):
            raise InternalError(f"a node answered a query with {type(answer).__name__}")
        return answer

    # Transactions.

    def transaction(self, *, level: str = "local", timeout: float | None = None) -> Transaction:
        """An interactive one: `async with db.transaction() as tx: await tx.execute(...)`."""
        return Transaction(self, level, timeout)

    async def run(self, story: Callable[[Transaction], Awaitable[_T]], *, level: str = "local") -> _T:
        """A transaction that is begun anew as long as others change what it reads."""
        for attempt in range(_ATTEMPTS):
            try:
                async with self.transaction(level=level) as tx:
                    return await story(tx)
            except SerializationFailure:
                if attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(random.uniform(0, min(0.5, 0.005 * 2**attempt)))
        raise AssertionError("the last attempt returns or raises")

    # The cluster.

    def log(self, first: int = 1, last: int | None = None) -> AsyncIterator[wire.Ordered]:
        """The order itself, from a position on; without an end, as it grows. On a connection of its own."""
        self._link.check()
        return follow(self._link.finder, first, last)

    async def digests(self) -> wire.Stands:
        """Where this client's node stands, and what its order and its state come to."""
        self._link.check()
        answer = await self._link.questions.ask(wire.Digests)
        if not isinstance(answer, wire.Stands):
            raise InternalError(f"a node was asked for digests and answered with {type(answer).__name__}")
        return answer


def _checked(written: Written) -> Written:
    if (error := written.error) is not None:
        raise error
    return written


def _level(level: str) -> Level:
    try:
        return Level(level)
    except ValueError:
        raise InterfaceError(f"level={level!r}: write one of {', '.join(Level)}") from None


def _reads(consistency: str) -> Reads:
    try:
        return Reads(consistency)
    except ValueError:
        raise InterfaceError(f"consistency={consistency!r}: write one of {', '.join(Reads)}") from None
