"""Sessions: is a request new, a repetition, or to be refused? Decided alike at every replica, from what the state says.

Requests of a session are decided in the order of their numbers, and what they came to is kept until the client says
that it has it. Of relaxed ones only the numbers are kept, as intervals. A session that nobody has used for long is
deleted as a whole: then its name says that it was named before the horizon, and it is refused for ever. Nothing here
touches a database: an adapter brings what it has stored, and stores what it is told.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from greenline.kernel.actions import WINDOW, Action, Outcome, Verdict, born_at

STORED_BYTES = 4096
"""Of a longer outcome only the verdict is kept."""
LARGEST = 2**62
"""No client comes to this number; databases can store it."""

Interval = tuple[int, int]
"""The first and the last of decided numbers without a gap."""


class Session(msgspec.Struct, frozen=True, gc=False):
    """One row. Outcomes are kept for the numbers after `received`, up to `last`."""

    last: int = 0
    """The last number that was decided."""
    received: int = 0
    used: int = 0
    """The position where it was last heard of."""


class Step(Enum):
    DECIDE = "decide"
    REPEAT = "repeat"
    """Tell what was decided."""


def unborn_or_over(name: str, horizon: int, position: int) -> Verdict | None:
    """Of a session that is not known here: was it, perhaps, before it was deleted? None begins before it was named."""
    born = born_at(name)
    if born > position:
        return Verdict.EARLY
    return Verdict.EXPIRED if born < horizon else None


def heard(session: Session, action: Action, position: int) -> Session:
    """It is in use, and its client may say what it has received. A relaxed request says nothing of the others."""
    if action.is_relaxed:
        return Session(session.last, session.received, position)
    return Session(session.last, max(session.received, min(action.received, session.last)), position)


def step_of(number: int, session: Session) -> Step | Verdict:
    """What to do with a request, once it is `heard`. An unknown session is as one of which nothing is decided."""
    if number <= session.received:
        return Verdict.RELEASED
    if number <= session.last:
        return Step.REPEAT
    if number > session.last + 1:
        return Verdict.EARLY
    if session.last - session.received >= WINDOW:
        return Verdict.CROWDED
    return Step.DECIDE


def relaxed_step_of(number: int, near: list[Interval]) -> Step | Verdict:
    """The same for a relaxed request; `near` are decided numbers around it."""
    if number < 1:
        return Verdict.RELEASED
    if number > LARGEST:
        return Verdict.EARLY
    return Step.REPEAT if any(first <= number <= last for first, last in near) else Step.DECIDE


def merged(number: int, near: list[Interval]) -> tuple[Interval, list[Interval]]:
    """A number is decided that was not: the interval that it is in from now on, and those that this one replaces."""
    adjacent = [each for each in near if each[1] == number - 1 or each[0] == number + 1]
    ends = [number, *(end for each in adjacent for end in each)]
    return (min(ends), max(ends)), adjacent


def to_be_kept(outcome: Outcome) -> Outcome:
    """What is told to who asks again."""
    is_whole = len(outcome.value) <= STORED_BYTES
    value = outcome.value if is_whole else b""
    return Outcome(outcome.verdict, value, outcome.position, outcome.sub, is_again=True, is_whole=is_whole)
