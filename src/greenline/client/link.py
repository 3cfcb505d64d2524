"""The link: a client's connection to whichever node it is at, and its way to another when that one is gone.

One task keeps it: it finds a node, hands it to all that is unanswered, and watches. A node that says nothing while
somebody waits is asked whether it is there; one that is in no primary component is left for one that is.
"""

from __future__ import annotations

import asyncio
import itertools

from greenline.access import wire
from greenline.client.connection import Connection
from greenline.client.errors import Error, InterfaceError, Unauthorised
from greenline.client.finding import Finder, Nobody
from greenline.client.patience import pause_s
from greenline.client.questions import Questions
from greenline.client.writes import Writes
from greenline.kernel.actions import OutcomeOf
from greenline.replication.port import Level, Reads, Where

SILENCE_S = 2.0
"""So long may a node say nothing while we wait; then we ask whether it is there, and wait as long again."""


class Link:
    def __init__(self, finder: Finder) -> None:
        self._tickets = itertools.count(1)
        self.writes = Writes(self._tickets)
        self.questions = Questions(self._tickets)
        self.finder = finder
        self.seen = 0
        """The highest position that this client was told of."""
        self.where: Where | None = None
        self.statement_bytes = 0
        self._broken: Error | None = InterfaceError("the client is not open")
        self._keeping: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._failures = 0
        """In a row, since a node has served us."""

    @property
    def is_waiting(self) -> bool:
        return self.writes.is_waiting or self.questions.is_waiting

    @property
    def address(self) -> str | None:
        """Of the node that it is at."""
        return self._connection.address if self._connection is not None else None

    def check(self) -> None:
        """Raises what makes it useless."""
        if self._broken is not None:
            raise self._broken

    async def open(self, timeout: float) -> None:
        connection = await self._find_within(timeout)
        self._broken = None
        self._attach(connection)
        self._keeping = asyncio.create_task(self._keep(connection))

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
            self._keeping = None
        connection = self._connection
        self._break(InterfaceError("the client was closed"))
        if connection is not None:
            await connection.is_gone

    # Finding a node.

    async def _find_within(self, timeout: float) -> Connection:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            try:
                return await self.finder.find()
            except Nobody as nobody:
                if loop.time() >= end or nobody.is_hopeless:
                    raise nobody.error from None
            self._failures += 1
            await self._pause()

    async def _find_again(self) -> Connection:
        """However long it takes. Raises `Unauthorised` if nobody knows us any more."""
        while True:
            if self._failures > 1:
                await self._pause()
            try:
                return await self.finder.find()
            except Nobody as nobody:
                if nobody.is_unanimous and all(isinstance(each, Unauthorised) for each in nobody.refusals):
                    raise nobody.error from None
                self._failures += 1

    async def _pause(self) -> None:
        await asyncio.sleep(pause_s(self._failures))

    # Staying with it.

    async def _keep(self, connection: Connection) -> None:
        try:
            while True:
                better = await self._watch(connection)
                connection.abandon("the client goes elsewhere")
                self._detach()
                self.finder.put_last(connection.address)
                connection = better or await self._find_again()
                self._attach(connection)
        except Unauthorised as error:
            self._break(error)

    async def _watch(self, connection: Connection) -> Connection | None:
        """Until it is lost, or somebody better is found."""
        loop = asyncio.get_running_loop()
        asked_at: float | None = None
        while True:
            await asyncio.wait({connection.lost}, timeout=SILENCE_S)
            if connection.lost.done():
                return None
            if not self.is_waiting or connection.heard_at > loop.time() - SILENCE_S:
                asked_at = None
            elif asked_at is None:
                asked_at = loop.time()
                nobody = OutcomeOf("nobody@0", 1)
                connection.send(wire.Read(next(self._tickets), None, Reads.WEAK, outcome_of=nobody))
            elif connection.heard_at < asked_at:
                return None
            if self.is_waiting and self.where is not None and not self.where.is_primary:
                better = await self.finder.find_primary(connection.address)
                if better is not None:
                    return better

    def _attach(self, connection: Connection) -> None:
        welcome = connection.welcome
        self._connection = connection
        self.where = welcome.where
        self.statement_bytes = welcome.statement_bytes
        connection.on_answer = self._on_answer
        self.writes.attach(connection)
        self.questions.attach(connection)

    def _detach(self) -> None:
        if self._connection is not None:
            self._connection.on_answer = None
            self._connection = None
        self.writes.detach()
        self.questions.detach()
        self._failures += 1

    def _break(self, error: Error) -> None:
        """Nothing will be asked any more."""
        self._broken = error
        if self._connection is not None:
            self._connection.abandon(str(error))
        self._detach()
        self.writes.close(str(error))
        self.questions.close(str(error))

    def _on_answer(self, answer: wire.Answer) -> None:
        match answer:
            case wire.Done() | wire.Rows() | wire.Stands():
                self._failures = 0
                self.seen = max(self.seen, answer.position)
                self.where = answer.where
                self.writes.saw(answer.position, answer.level if isinstance(answer, wire.Done) else Level.LOCAL)
            case wire.Taken():
                self._failures = 0
                self.where = answer.where
        if not self.writes.on_answer(answer):
            self.questions.on_answer(answer)
