"""A mutant: a core with one mistake, made by changing what it hears or what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

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
