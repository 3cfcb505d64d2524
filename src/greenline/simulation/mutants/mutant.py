"""A mutant: a core with one mistake, made by changing what it hears or what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from greenline.kernel.core import Core
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


class Seeded:
    """The seeded bugs of one core, each some patches; its invariants are off, so that something else must catch it."""

    def __init__(self, invariants: Any) -> None:
        self.mutants: dict[str, Mutant] = {}
        self._no_invariants: Patch = (invariants, "check", lambda _: None)

    def __call__(self, name: str, mistake: str, *patches: Patch, scenario: str | None = None) -> None:
        def spoil(right: Core) -> Core:
            return Patched(right, (self._no_invariants, *patches))

        self.mutants[name] = Mutant(name, mistake, spoil, scenario)


class Patched(Wrapped):
    """A core some of whose functions are others, while it is at work; between two events everything is as it was."""

    def __init__(self, core: Core, patches: tuple[Patch, ...]) -> None:
        super().__init__(core)
        self._patches = patches

    def handle(self, now: float, event: Event) -> list[Effect]:
        right = [getattr(owner, name) for owner, name, _ in self._patches]
        for owner, name, wrong in self._patches:
            setattr(owner, name, wrong)
        try:
            return self.core.handle(now, event)
        finally:
            for (owner, name, _), original in zip(self._patches, right, strict=True):
                setattr(owner, name, original)
