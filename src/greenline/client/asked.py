"""What was asked and is not answered: requests of one call, cut into parts, numbered in a session. Does no I/O.

A session numbers the parts that are sent in it, and knows up to where their outcomes are received. No more than a
window of them is unanswered. When a session is over, what becomes of its parts is decided here: a part is repeated in
another session only if it is certain that it was not, and never will be, decided in this one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from greenline.client.errors import Error, OutcomeUnknown
from greenline.kernel.actions import DECIDED, WINDOW, Action, Outcome
from greenline.replication.port import Level, Where

AROUND = 96
"""Bytes that an action has around its body, at most: its identity, and what its client has received."""


class Identity(msgspec.Struct, frozen=True):
    """Of a request, for all time: what became of it can be asked by whoever knows it."""

    session: str
    number: int

    def __str__(self) -> str:
        return f"{self.session}/{self.number}"


class Asked:
    """What one call asked for: an action, or several in a row. Their outcomes gather here, in any order."""

    __slots__ = ("_green", "_taken", "bodies", "cut", "left", "level", "outcomes", "parts", "tell_taken", "untaken")

    def __init__(self, bodies: Sequence[bytes], level: Level, tell_taken: bool) -> None:
        self.bodies = bodies
        self.level = level
        self.tell_taken = tell_taken
        self.parts: list[Part] = []
        """In order; together they are the first `cut` bodies."""
        self.cut = 0
        self.outcomes: list[Outcome | Error | None] = [None] * len(bodies)
        self.left = len(bodies)
        self.untaken = len(bodies)
        self._green: list[asyncio.Future[None]] = []
        self._taken: list[asyncio.Future[None]] = []

    async def until_green(self) -> None:
        if self.left:
            await _one_of(self._green)

    async def until_taken(self) -> None:
        """Or green."""
        if self.left and self.untaken:
            await _one_of(self._taken)

    def next_part(self, most: int, most_bytes: int) -> Part:
        """So many actions, or as many as have so many bytes; at least one."""
        stop = self.cut + 1
        size = len(self.bodies[self.cut]) + AROUND
        while stop < min(self.cut + most, len(self.bodies)) and size + len(self.bodies[stop]) + AROUND <= most_bytes:
            size += len(self.bodies[stop]) + AROUND
            stop += 1
        part = Part(self, self.cut, stop, size)
        self.cut = stop
        self.parts.append(part)
        return part

    def take(self, count: int) -> None:
        self.untaken -= count
        if self.untaken == 0:
            _wake(self._taken)

    def settle(self, place: int, outcome: Outcome | Error) -> None:
        assert self.outcomes[place] is None, "an action is settled once"
        self.outcomes[place] = outcome
        self.left -= 1
        if self.left == 0:
            _wake(self._green)
            _wake(self._taken)


class Part:
    """A run of one call's actions with consecutive numbers of one session."""

    __slots__ = (
        *("asked", "first", "is_known_taken", "is_settled", "is_taken", "is_told", "level"),
        *("refusal", "session", "size", "start", "stop", "times", "where"),
    )

    def __init__(self, asked: Asked, start: int, stop: int, size: int) -> None:
        self.asked = asked
        self.start = start
        self.stop = stop
        self.size = size
        """Of the actions, in bytes, or a little less."""
        self.session = ""
        self.first = 0
        self.times = 0
        """So often was it sent in its session."""
        self.is_told = False
        """It was sent in its session, and answered, and is not decided by that."""
        self.refusal: Error | None = None
        """Why it is not to be repeated."""
        self.is_taken = False
        self.is_known_taken = False
        """Also to who asked for it: so is all that was asked for before it in its session."""
        self.is_settled = False
        self.where: Where | None = None
        self.level = asked.level

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def bodies(self) -> Sequence[bytes]:
        return self.asked.bodies[self.start : self.stop]

    @property
    def identity(self) -> Identity:
        return Identity(self.session, self.first)

    def take(self, where: Where) -> None:
        if not self.is_taken:
            self.is_taken = True
            self.where = where

    def tell_taken(self) -> None:
        if not self.is_known_taken:
            self.is_known_taken = True
            self.asked.take(len(self))

    def settle(self, outcomes: Sequence[Outcome], where: Where, level: Level) -> None:
        self.where = where
        self.level = level
        self.is_settled = True
        for place, outcome in enumerate(outcomes, self.start):
            self.asked.settle(place, outcome)

    def fail(self, error: Error) -> None:
        self.is_settled = True
        for place in range(self.start, self.stop):
            self.asked.settle(place, error)

    def split(self) -> list[Part]:
        """One for each of its actions, because they fare differently."""
        singles = []
        for ahead, body in enumerate(self.bodies):
            single = Part(self.asked, self.start + ahead, self.start + ahead + 1, len(body))
            single.session, single.first = self.session, self.first + ahead
            single.times, single.is_taken, single.where = self.times, self.is_taken, self.where
            single.is_known_taken = self.is_known_taken
            singles.append(single)
        at = self.asked.parts.index(self)
        self.asked.parts[at : at + 1] = singles
        return singles


class Session:
    def __init__(self, name: str) -> None:
        self.name = name
        self.last = 0
        """The last number that was given."""
        self.received = 0
        self.outstanding: deque[Part] = deque()
        """In the order of their numbers: all after `received`."""
        self.in_flight = 0
        """Parts of it that were sent on this connection and are not answered there."""
        self._untold: deque[Part] = deque()
        """Of which nobody was told that they are accepted."""

    @property
    def room(self) -> int:
        return WINDOW - (self.last - self.received)

    @property
    def is_all_taken(self) -> bool:
        return all(part.is_taken or part.is_settled for part in self.outstanding)

    def number(self, part: Part) -> None:
        part.session = self.name
        part.first = self.last + 1
        part.times = 0
        part.is_told = part.is_taken = False
        self.last += len(part)
        self.outstanding.append(part)
        self._untold.append(part)

    def actions_of(self, part: Part) -> Iterator[Action]:
        for number, body in enumerate(part.bodies, part.first):
            yield Action(self.name, number, body, self.received)

    def answer(self, part: Part, outcomes: Sequence[Outcome], where: Where, level: Level) -> list[Part]:
        """Settle what is decided by this; whatever is not, is returned."""
        if all(outcome.verdict in DECIDED for outcome in outcomes):
            part.settle(outcomes, where, level)
            return []
        undecided = []
        singles = part.split()
        for single, outcome in zip(singles, outcomes, strict=True):
            if outcome.verdict in DECIDED:
                single.settle([outcome], where, level)
            else:
                single.is_told = True
                undecided.append(single)
        self.outstanding = deque(each for kept in self.outstanding for each in (singles if kept is part else [kept]))
        self._untold = deque(each for each in self.outstanding if not each.is_known_taken)
        return undecided

    def tell_taken(self) -> None:
        """Of what is accepted, up to the first that is not: what stands behind that one cannot be decided before it."""
        while self._untold and (self._untold[0].is_taken or self._untold[0].is_settled):
            part = self._untold.popleft()
            if not part.is_settled:
                part.tell_taken()

    def receive(self) -> None:
        """Of all that is settled without a gap, the outcomes need not be kept for us any more."""
        while self.outstanding and self.outstanding[0].is_settled:
            part = self.outstanding.popleft()
            self.received = part.first + len(part) - 1

    def close(self, reason: str) -> list[Part]:
        """It is over. What is certain not to be decided in it, to be asked elsewhere; of the rest nobody can tell.

        A part that was sent once, and was answered, and is not decided by that, never will be: there is no other copy
        of it. Then nothing after it will be either, since a session's requests are decided in the order of their
        numbers, however often that was sent.
        """
        undone: list[Part] = []
        is_void = False
        for part in self.outstanding:
            if part.is_settled:
                is_void = is_void or part.refusal is not None
                continue
            is_void = is_void or part.times == 0 or (part.times == 1 and part.is_told)
            if is_void and part.refusal is not None:
                part.fail(part.refusal)
            elif is_void:
                undone.append(part)
            else:
                what = f"{part.identity}: {reason}. It may have been decided: find out before you ask for it again"
                part.fail(OutcomeUnknown(what, part.identity))
        self.outstanding.clear()
        return undone


async def _one_of(waiting: list[asyncio.Future[None]]) -> None:
    """A future for each who waits: one that is cancelled leaves the others alone."""
    mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting.append(mine)
    try:
        await mine
    finally:
        if mine in waiting:
            waiting.remove(mine)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
