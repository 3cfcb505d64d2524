"""Reading the order: any range of it, from whoever has it, and never with a gap.

What is read is followed twice: position by position, and by the digest of the order, which every bundle continues. A
range that does not continue what came before it, or does not lead to what was promised of it, is not given on: it is of
another order, so of another cluster, or of this one after it was restored from a backup.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

import msgspec

from greenline.access import wire
from greenline.client.connection import Connection
from greenline.client.errors import Error, Refused, refusal_of
from greenline.client.finding import Nobody
from greenline.pipeline.reaching import Reach
from greenline.replication.replica import NO_ORDER, chained

PATIENCE_S = 60.0
"""So long nobody may tell us anything, before we give up."""
STALLED_S = 5.0
"""A node that tells nothing for so long is left for another."""
_PAUSE_S = 0.2
KEPT_ELSEWHERE = (
    'Give the archive that was kept of it as option("archive", DIRECTORY), or begin where the order is kept: '
    'option("first", POSITION)'
)
_AHEAD = 16
"""So many answers are taken from a node before their reader wants them."""
_T = TypeVar("_T")


class NotRead(Exception):
    """The order cannot be read: why, and what to do.

    NotRead
    ├── Discarded       nobody keeps this part of it any more
    ├── AnotherOrder    what is there is not what was read, or promised, before
    └── OutOfReach      nobody tells it
    """


class Discarded(NotRead):
    def __init__(self, what: str, remedy: str = "") -> None:
        """`remedy`: of who reads it by the source; who follows an order has another one."""
        super().__init__(f"{what}. {remedy}" if remedy else what)
        self.what = what


class AnotherOrder(NotRead):
    pass


class OutOfReach(NotRead):
    pass


class Place(msgspec.Struct, frozen=True):
    """A place between two bundles: how many come before it, and what the order comes to there; empty if unknown."""

    position: int
    digest: bytes = b""


BEGINNING = Place(0, NO_ORDER)


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Some bundles that follow each other, and what the order comes to with each."""

    bundles: Sequence[wire.Bundle]
    digests: Sequence[bytes]


class Order(Protocol):
    """Whoever has the order, or a part of it."""

    def newest(self) -> Place:
        """How far it goes by now."""
        ...

    def places(self, positions: Sequence[int]) -> list[Place]:
        """What it comes to at each; unknown, or `Discarded`, if it is not kept there."""
        ...

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        """All of it from there to this position, checked. Raises `NotRead`."""
        ...


class Chain:
    """How far somebody has read. Raises `AnotherOrder` when that is not continued."""

    def __init__(self, place: Place, whence: str) -> None:
        self.place = place
        self._whence = whence

    def follow(self, bundles: Sequence[wire.Bundle], before: bytes, after: bytes) -> Piece:
        """The next ones; `before` and `after` are what who tells of them says that the order comes to around them."""
        position, digest = self.place.position, self.place.digest
        self.expect(Place(position, before))
        digest = digest or before
        if not digest:
            raise NotRead(f"{self._whence} does not say what the order comes to before {position + 1}: upgrade it")
        digests = []
        for bundle in bundles:
            position += 1
            if bundle.position != position:
                raise AnotherOrder(f"{self._whence} told of position {bundle.position} where {position} was expected")
            digest = chained(digest, bundle.bundle, bundle.content)
            digests.append(digest)
        self.place = Place(position, digest)
        self.expect(Place(position, after))
        return Piece(bundles, digests)

    def expect(self, place: Place) -> None:
        """Unless one of both is not known, it is the same."""
        assert place.position == self.place.position, "places are compared at one position"
        if place.digest and self.place.digest and place.digest != self.place.digest:
            raise AnotherOrder(
                f"the order up to position {place.position} comes to {self.place.digest.hex()}, and to "
                f"{place.digest.hex()} by {self._whence}: this is another cluster than was read before, or it was "
                "restored from a backup since; read it from its beginning, with a checkpoint or an archive of its own"
            )


class Both:
    """What is kept aside, as far as it goes; and beyond it, and before it, whoever has the rest."""

    def __init__(self, kept: Order, rest: Order) -> None:
        self._kept = kept
        self._rest = rest

    def newest(self) -> Place:
        return self._rest.newest()

    def places(self, positions: Sequence[int]) -> list[Place]:
        kept = [self._kept_place(position) for position in positions]
        lacking = [place.position for place in kept if not place.digest]
        rest = iter(self._rest.places(lacking) if lacking else ())
        return [place if place.digest else next(rest) for place in kept]

    def _kept_place(self, position: int) -> Place:
        try:
            return self._kept.places([position])[0]
        except Discarded:
            return Place(position)

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        end = min(last, self._kept.newest().position)
        if after.position < end:
            try:
                begin = after if after.digest else self._kept_place(after.position)
                for piece in self._kept.pieces(begin, end):
                    after = Place(after.position + len(piece.bundles), piece.digests[-1])
                    yield piece
            except Discarded:
                pass  # it begins later: the rest may have it
        if after.position < last:
            yield from self._rest.pieces(after, last)


class Replicas:
    """The order as the nodes of a running cluster tell it: any of them, and another one when that is gone."""

    def __init__(self, reach: Reach, patience: float = PATIENCE_S) -> None:
        self._reach = reach
        self._patience = patience

    def __str__(self) -> str:
        return f"the cluster at {self._reach.addresses}"

    def newest(self) -> Place:
        return _run(self._newest())

    def places(self, positions: Sequence[int]) -> list[Place]:
        return _run(self._places(positions))

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        chain = Chain(after, str(self))
        for ordered in _stepped(self._ordered(after.position + 1, last)):
            yield chain.follow(ordered.bundles, ordered.before, ordered.digest)

    def role(self) -> str:
        """What its user may do there."""
        return _run(self._role())

    # On a loop.

    async def _role(self) -> str:
        async for call in self._calls():
            return call.connection.welcome.role
        raise AssertionError("calls end with an error, or with an answer")

    async def _newest(self) -> Place:
        async for call in self._calls():
            position = call.connection.welcome.position
            if (place := await _place(call, position)) is not None:
                return place
        raise AssertionError("calls end with an error, or with an answer")

    async def _places(self, positions: Sequence[int]) -> list[Place]:
        found: list[Place] = []
        async for call in self._calls():
            while len(found) < len(positions):
                place = await _place(call, positions[len(found)])
                if place is None:
                    break
                found.append(place)
            else:
                return found
        raise AssertionError("calls end with an error, or with an answer")

    async def _ordered(self, first: int, last: int) -> AsyncGenerator[wire.Ordered, None]:
        """Each position once, whoever tells of it."""
        wanted = first
        lacking: dict[str, Refused] = {}
        async with aclosing(self._calls()) as calls:
            async for call in calls:
                if wanted > last:
                    return
                try:
                    async with aclosing(call.ordered(wanted, last)) as told:
                        async for ordered in told:
                            if ordered.bundles:
                                wanted = ordered.bundles[-1].position + 1
                                call.has_told = True
                                yield ordered
                except Refused as no:
                    if no.kind != "discarded":
                        raise NotRead(f"{self} does not tell of position {wanted}: {no}") from None
                    if call.connection.address in lacking:
                        said = "; ".join(str(each) for _, each in sorted(lacking.items()))
                        raise Discarded(f"position {wanted} is discarded by {self} ({said})", KEPT_ELSEWHERE) from None
                    lacking[call.connection.address] = no
                if wanted > last:
                    return

    async def _calls(self) -> AsyncGenerator[_Call, None]:
        """One node after the other, until it is enough. Raises `OutOfReach` if nobody tells anything for long."""
        finder = self._reach.finder()
        said = "nobody has answered"
        heard = time.monotonic()
        while True:
            try:
                connection = await finder.find()
            except Nobody as nobody:
                if nobody.is_unanimous:
                    raise NotRead(f"{self} does not let {self._reach.user} in: {nobody.error}") from None
                said = str(nobody)
            except Error as error:
                raise NotRead(f"{self} cannot be read: {error}") from None
            else:
                call = _Call(connection, min(STALLED_S, self._patience))
                try:
                    yield call
                finally:
                    connection.abandon("what it was asked is told")
                if call.has_told:
                    heard = time.monotonic()
                said = call.why_over or said
                finder.put_last(connection.address)
            if time.monotonic() - heard > self._patience:
                raise OutOfReach(
                    f"{self} has told nothing for {self._patience:g} s ({said}): see that its nodes run and can be "
                    "reached from here"
                )
            await asyncio.sleep(_PAUSE_S)


class _Call:
    """What one node is asked on one connection, which is not read from faster than its reader takes."""

    def __init__(self, connection: Connection, stalled: float) -> None:
        self.connection = connection
        self._stalled = stalled
        self.has_told = False
        self.why_over = ""
        self._tickets = 0
        self._told: asyncio.Queue[wire.Answer | None] = asyncio.Queue()
        connection.on_answer = self._on_answer
        connection.lost.add_done_callback(lambda _: self._told.put_nowait(None))

    async def ordered(self, first: int, last: int) -> AsyncGenerator[wire.Ordered, None]:
        """Until it ends, or this node tells nothing more. Raises `Refused`."""
        self._tickets += 1
        self.connection.send(wire.Log(self._tickets, first, last))
        while True:
            try:
                async with asyncio.timeout(self._stalled):
                    answer = await self._told.get()
            except TimeoutError:
                self.why_over = f"{self.connection.address} has no position {last}, or is cut off"
                return
            if self._told.qsize() < _AHEAD:
                self.connection.resume()
            match answer:
                case wire.Ordered():
                    yield answer
                    if answer.is_end:
                        return
                case wire.No(is_retriable=False):
                    raise refusal_of(answer.kind, f"{self.connection.address}: {answer.reason}")
                case wire.No(reason=reason):
                    self.why_over = f"{self.connection.address}: {reason}"
                    return
                case _:
                    self.why_over = f"{self.connection.address} was lost"
                    return

    def _on_answer(self, answer: wire.Answer) -> None:
        self._told.put_nowait(answer)
        if self._told.qsize() >= _AHEAD:
            self.connection.pause()


async def _place(call: _Call, position: int) -> Place | None:
    """What the order comes to there: a log that ends before it begins says it. None if this node does not answer."""
    async with aclosing(call.ordered(position + 1, position)) as told:
        async for ordered in told:
            call.has_told = True
            return Place(position, ordered.digest)
    return None


def _run(story: Coroutine[Any, Any, _T]) -> _T:
    with asyncio.Runner() as runner:
        return runner.run(story)


def _stepped(told: AsyncGenerator[_T, None]) -> Iterator[_T]:
    """What is told, for a reader who knows no event loop."""

    async def step() -> _T:
        return await anext(told)

    with asyncio.Runner() as runner:
        try:
            while True:
                yield runner.run(step())
        except StopAsyncIteration:
            return
        finally:
            runner.run(told.aclose())
