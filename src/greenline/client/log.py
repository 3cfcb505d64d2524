"""The ordered log, followed across nodes: each position once, in order, whoever tells of it.

It has a connection of its own, which is not read from faster than its reader takes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from greenline.access import wire
from greenline.client.connection import Connection
from greenline.client.errors import InternalError, refusal_of
from greenline.client.finding import Finder, Nobody

_AHEAD = 16
"""So many answers are taken from a node before their reader wants them."""
_PAUSE_S = 0.2


async def follow(finder: Finder, first: int, last: int | None) -> AsyncIterator[wire.Ordered]:
    """Raises `Refused` if nobody has it any more."""
    wanted = first
    while True:
        try:
            connection = await finder.find()
        except Nobody as nobody:
            if nobody.is_unanimous:
                raise nobody.error from None
            await asyncio.sleep(_PAUSE_S)
            continue
        feed = _Feed(connection)
        connection.send(wire.Log(1, wanted, last))
        try:
            async for ordered in feed.answers():
                for bundle in ordered.bundles:
                    if bundle.position != wanted:
                        raise InternalError(
                            f"{connection.address} told of position {bundle.position} after {wanted - 1}"
                        )
                    wanted += 1
                yield ordered
                if ordered.is_end:
                    return
        finally:
            connection.abandon("the log is not followed any more")
        finder.put_last(connection.address)
        await asyncio.sleep(_PAUSE_S)


class _Feed:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told: deque[wire.Answer] = deque()
        self._more = asyncio.Event()
        connection.on_answer = self._on_answer
        connection.lost.add_done_callback(lambda _: self._more.set())

    async def answers(self) -> AsyncIterator[wire.Ordered]:
        """Until the connection is lost. Raises `Refused`."""
        while True:
            while self._told:
                answer = self._told.popleft()
                if len(self._told) < _AHEAD:
                    self._connection.resume()
                match answer:
                    case wire.Ordered():
                        yield answer
                    case wire.No(is_retriable=False):
                        raise refusal_of(answer.kind, answer.reason)
                    case wire.No() | wire.Lost():
                        return
            if self._connection.lost.done():
                return
            self._more.clear()
            await self._more.wait()

    def _on_answer(self, answer: wire.Answer) -> None:
        self._told.append(answer)
        if len(self._told) >= _AHEAD:
            self._connection.pause()
        self._more.set()
