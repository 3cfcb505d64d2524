"""The contract of a protocol core: told what happened, it answers with what should be done.

A core is deterministic. Time comes with each event, chance is a generator handed in at construction,
and whatever leaves it is in sorted order. It holds its state in a phase: a dataclass with exactly what
that phase knows.
"""

from __future__ import annotations

from typing import Protocol

from greenline.kernel.effects import Effect
from greenline.kernel.events import Event


class Core(Protocol):
    @property
    def phase(self) -> object:
        """The phase that we are in, or None where there are none; the router traces every change of its type."""

    def handle(self, now: float, event: Event) -> list[Effect]:
        """Same events, same effects, always."""


class Chance(Protocol):
    """The part of `random.Random` that a core may use; the generator itself is handed in."""

    def random(self) -> float: ...
    def uniform(self, a: float, b: float) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...


class Impossible(Exception):
    """The papers' "not possible" has happened: our own mistake. The node stops rather than guess."""

    def __init__(self, phase: object, event: object, evidence: str = "") -> None:
        self.phase = phase
        self.event = event
        because = f", {evidence}" if evidence else ""
        super().__init__(f"{event!r} in {type(phase).__name__}{because}")
