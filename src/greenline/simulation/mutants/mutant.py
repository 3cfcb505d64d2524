"""A mutant: a core with one mistake, made by changing what it hears or what it answers; or its database has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from greenline.database.memory import MemorySqlite
from greenline.kernel.core import Core
from greenline.kernel.database import Answer, Ask
from greenline.kernel.effects import Effect
from greenline.kernel.events import Event
from greenline.kernel.identities import ProcId
from greenline.kernel.router import Layer
from greenline.simulation.world import Build

Spoiler = Callable[[Core], Core]


@dataclass(frozen=True)
class Mutant:
    name: str
    mistake: str
    """What it does wrong, in a sentence."""
    wrap: Spoiler
    scenario: str | None = None
    """The scenario that catches it, where storms hardly ever do."""
    database: type[MemorySqlite] = MemorySqlite
    """What stands behind it."""

    def spoil(self, build: Build) -> Build:
        def spoiled(me: ProcId, names: tuple[ProcId, ...], chance: Random) -> Sequence[Layer]:
            layers = build(me, names, chance)
            layers[0].core = self.wrap(layers[0].core)
            return layers

        return spoiled


class Wrapped:
    """A core inside another: changes nothing, until a subclass does."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @property
    def phase(self) -> object:
        return self.core.phase

    def handle(self, now: float, event: Event) -> list[Effect]:
        return self.answers(self.core.handle(now, self.hears(event)))

    def hears(self, event: Event) -> Event:
        return event

    def answers(self, effects: list[Effect]) -> list[Effect]:
        return effects


Patch = tuple[Any, str, Any]
"""Where, which name, and what stands there instead."""


@contextmanager
def in_force(patches: tuple[Patch, ...]) -> Iterator[None]:
    """While this lasts; before and after everything is as it was."""
    right = [getattr(owner, name) for owner, name, _ in patches]
    for owner, name, wrong in patches:
        setattr(owner, name, wrong)
    try:
        yield
    finally:
        for (owner, name, _), original in zip(patches, right, strict=True):
            setattr(owner, name, original)


class Seeded:
    """The seeded bugs of one core, each some patches; its invariants are off, so that something else must catch it."""

    def __init__(self, invariants: Any) -> None:
        self.mutants: dict[str, Mutant] = {}
        self._no_invariants: Patch = (invariants, "check", lambda _: None)

    def __call__(
        self,
        name: str,
        mistake: str,
        *patches: Patch,
        scenario: str | None = None,
        database: type[MemorySqlite] = MemorySqlite,
    ) -> None:
        def spoil(right: Core) -> Core:
            return Patched(right, (self._no_invariants, *patches))

        self.mutants[name] = Mutant(name, mistake, spoil, scenario, database)


class Patched(Wrapped):
    """A core some of whose functions are others, while it is at work."""

    def __init__(self, core: Core, patches: tuple[Patch, ...]) -> None:
        super().__init__(core)
        self._patches = patches

    def handle(self, now: float, event: Event) -> list[Effect]:
        with in_force(self._patches):
            return self.core.handle(now, event)


def database_with(*patches: Patch) -> type[MemorySqlite]:
    """A database some of whose functions are others, while it answers."""

    class PatchedDatabase(MemorySqlite):
        def answer(self, request: Ask) -> Answer:
            with in_force(patches):
                return super().answer(request)

    return PatchedDatabase
