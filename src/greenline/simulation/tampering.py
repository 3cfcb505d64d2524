"""Tampering: single packets lost, delayed, copied or waited for, by what they say and not by when they come.

Scenarios are told with it: "the second token from q to r is lost". Chance has no part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenline.kernel.identities import ProcId
from greenline.simulation.packets import opened
from greenline.simulation.world import World

ALWAYS = 1 << 60
Packet = tuple[ProcId, ProcId, bytes]
"""From whom, to whom, and the frame."""
Where = Callable[[Any], bool]


@dataclass
class Rule:
    """Which packets, and what becomes of each: the delays with which copies of it travel on."""

    kinds: tuple[type[Any], ...]
    senders: frozenset[ProcId]
    receivers: frozenset[ProcId]
    where: Where
    skip: int
    """So many pass before the first that is tampered with."""
    times: int
    delays: tuple[float, ...]
    do: Callable[[], object] | None = None
    """What happens at that moment, besides."""
    at_once: bool = False
    """While the sender is still at it, and not when it has done what it is doing."""
    kept: list[Packet] | None = None
    """Where they are put aside, to arrive when the scenario says so."""

    def matches(self, sender: ProcId, receiver: ProcId, message: object) -> bool:
        if self.times <= 0 or sender not in self.senders or receiver not in self.receivers:
            return False
        if (self.kinds and type(message) not in self.kinds) or not self.where(message):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class Tampering:
    """Sits in a network; the first rule that fits a packet decides."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rules: list[Rule] = []
        world.network.tamper = self._tamper

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)

    def end(self) -> None:
        self._rules.clear()

    def _tamper(self, sender: ProcId, receiver: ProcId, frame: bytes) -> tuple[float, ...]:
        if not self._rules:
            return (0.0,)
        message = opened(self._world, sender, frame)
        for rule in self._rules:
            if rule.matches(sender, receiver, message):
                if rule.kept is not None:
                    rule.kept.append((sender, receiver, frame))
                if rule.do is not None and rule.at_once:
                    rule.do()
                elif rule.do is not None:
                    self._world.agenda.after(0.0, _act, rule.do)
                return rule.delays
        return (0.0,)


def _act(do: Callable[[], object]) -> None:
    do()
