"""What callers get: every answer says what it is, its colour and position, and the component that it was given in."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from greenline.access import wire
from greenline.client.asked import Asked, Identity, Part
from greenline.client.errors import (
    DatabaseError,
    Error,
    InternalError,
    ResultForgotten,
    SerializationFailure,
    error_of,
)
from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import Conflict, Failure, Result, reply_of, results_of
from greenline.replication.port import Level, Reads, Where


class Colour(StrEnum):
    RED = "red"
    """Accepted: it will be ordered; its outcome is open."""
    GREEN = "green"
    """Its place in the order is known, and so is its outcome."""


class Written(msgspec.Struct, frozen=True):
    """An action, as far as is known. Whoever reads the results of one that failed gets its error."""

    session: str
    number: int
    component: Where | None
    """None: nobody answered."""
    level: Level
    outcome: Outcome | Error | None
    """None: it is open."""
    asked: Asked | None = None
    """To wait for, while it is open."""

    @property
    def identity(self) -> Identity:
        return Identity(self.session, self.number)

    @property
    def colour(self) -> Colour:
        return Colour.RED if self.outcome is None else Colour.GREEN

    @property
    def position(self) -> int:
        """Of its bundle in the order; 0 if it has none so far."""
        return self.outcome.position if self.outcome is not None else 0

    @property
    def sub(self) -> int:
        """Its place in the bundle."""
        return self.outcome.sub if isinstance(self.outcome, Outcome) else 0

    @property
    def error(self) -> Error | None:
        """Why nothing came of it; None if it was done, or is still open."""
        match self.outcome:
            case Error() as error:
                return error
            case Outcome() as outcome if (failure := outcome_error(outcome)) is not None:
                failure.identity = self.identity
                return failure
        return None

    @property
    def results(self) -> tuple[Result, ...]:
        """One for each statement; none while it is red."""
        if (error := self.error) is not None:
            raise error
        if not isinstance(self.outcome, Outcome):
            return ()
        if not self.outcome.is_whole:
            raise ResultForgotten(
                "it was done; its result was too long to be kept for who asks again", position=self.position
            )
        return _opened_results(self.outcome.value)

    @property
    def result(self) -> Result:
        """Of the last statement."""
        results = self.results
        return results[-1] if results else Result()

    @property
    def changes(self) -> int:
        return sum(result.changes for result in self.results)

    @property
    def last_id(self) -> int:
        return self.result.last_id

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        return self.result.rows

    async def green(self) -> Written:
        """What it came to, once that is known. Raises the error of an action that failed."""
        written = self
        if self.asked is not None:
            await self.asked.until_green()
            (written,) = written_by(self.asked)
        if (error := written.error) is not None:
            raise error
        return written


class Rows(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    position: int
    """Of the green state that they show."""
    reds: int
    """So many bundles on top of it, if it was a dirty read."""
    consistency: Reads
    component: Where

    @property
    def colour(self) -> Colour:
        return Colour.RED if self.reds else Colour.GREEN

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def written_by(asked: Asked) -> list[Written]:
    """Each action of a call; also of those that were never sent, because the client was closed."""
    sent = [each for part in asked.parts for each in _written_part(asked, part)]
    unsent = [Written("", 0, None, asked.level, outcome) for outcome in asked.outcomes[asked.cut :]]
    return sent + unsent


def _written_part(asked: Asked, part: Part) -> Iterator[Written]:
    where, level, session = part.where, part.level, part.session
    for number, place in enumerate(range(part.start, part.stop), part.first):
        outcome = asked.outcomes[place]
        yield Written(session, number, where, level, outcome, asked if outcome is None else None)


def outcome_error(outcome: Outcome) -> DatabaseError | None:
    if outcome.verdict is Verdict.DONE:
        return None
    if outcome.verdict is Verdict.CONFLICT:
        return SerializationFailure(
            "what the transaction had read has changed since; begin it anew", position=outcome.position
        )
    if not outcome.is_whole:
        return DatabaseError("it failed; why was too long to be kept for who asks again", position=outcome.position)
    match _opened_reply(outcome.value):
        case Failure() as failure:
            return error_of(failure, outcome.position)
    return InternalError(f"it is {outcome.verdict}, and does not say why", position=outcome.position)


def result_of(answer: wire.Rows) -> Result:
    """What a query came to, or its error."""
    match _opened_reply(answer.rows):
        case Result() as result:
            return result
        case Failure() as failure:
            raise error_of(failure, answer.position)
        case Conflict(statement):
            what = f"what statement {statement + 1} of the transaction had come to has changed since; begin it anew"
            raise SerializationFailure(what, position=answer.position)


def failure_of(answer: wire.Rows) -> Failure | None:
    reply = _opened_reply(answer.rows)
    return reply if isinstance(reply, Failure) else None


def _opened_reply(value: bytes) -> Result | Failure | Conflict:
    try:
        return reply_of(value)
    except Garbled as error:
        # A change of the cluster that is not possible says so in plain words; so does an action that cannot be opened.
        return Failure(0, "Failed", value.decode(errors="replace") or str(error))


def _opened_results(value: bytes) -> tuple[Result, ...]:
    try:
        return results_of(value)
    except Garbled as error:
        raise InternalError(f"a node answered with {error}") from error
