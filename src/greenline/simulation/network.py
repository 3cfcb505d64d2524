"""The network: latency, loss, duplication, reordering, delay spikes and cuts, link by link.

Every directed link has a generator of its own, so that what happens on one does not change what happens on
another: a run that is made shorter stays similar. Faults compose: a link is cut while any fault cuts it, rates of
loss combine as independent causes do, delays add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import msgspec

from greenline.kernel.identities import ProcId
from greenline.simulation.agenda import Agenda

REORDERED_BY_S = 0.020
"""How much later than its neighbours a reordered packet may come."""


class Latency(msgspec.Struct, frozen=True):
    """How long a packet travels: a floor, and a tail above it.

    `constant` has no tail, `uniform` one of at most `spread_s`, `exponential` one of mean `spread_s`, and
    `heavy` is Pareto's: most packets are quick and a few are very late.
    """

    kind: str = "exponential"
    floor_s: float = 0.0005
    spread_s: float = 0.0005

    def draw(self, chance: Random) -> float:
        match self.kind:
            case "constant":
                return self.floor_s
            case "uniform":
                return self.floor_s + self.spread_s * chance.random()
            case "exponential":
                return self.floor_s + chance.expovariate(1.0) * self.spread_s
            case "heavy":
                return self.floor_s + self.spread_s * min(chance.paretovariate(1.5) - 1.0, 100.0)
            case other:
                raise ValueError(f"no latency distribution is called {other!r}: constant, uniform, exponential, heavy")


class Link:
    """One direction between two processes, as it is now."""

    __slots__ = ("chance", "cuts", "delays", "latency")

    def __init__(self, latency: Latency, chance: Random) -> None:
        self.latency = latency
        self.chance = chance
        self.cuts = 0
        self.delays = 0.0


class Network:
    def __init__(
        self,
        agenda: Agenda,
        names: tuple[ProcId, ...],
        seed: str,
        latency: Latency,
        arrive: Callable[[ProcId, ProcId, bytes], None],
    ) -> None:
        self.agenda = agenda
        self.names = names
        self.counts: Counter[str] = Counter()
        self.loss = 0.0
        self.duplication = 0.0
        self.reordering = 0.0
        self._arrive = arrive
        self.links = {(a, b): Link(latency, Random(f"{seed}/link/{a}/{b}")) for a in names for b in names if a != b}

    def transmit(self, sender: ProcId, to: Iterable[ProcId], frame: bytes) -> None:
        after = self.agenda.after
        counts = self.counts
        for receiver in to:
            link = self.links.get((sender, receiver))
            counts["packets"] += 1
            if link is None:
                counts["to nobody"] += 1
                continue
            if link.cuts:
                counts["cut off"] += 1
                continue
            chance = link.chance
            if self.loss and chance.random() < self.loss:
                counts["lost"] += 1
                continue
            after(self._travel(link), self._land, sender, receiver, frame)
            if self.duplication and chance.random() < self.duplication:
                counts["duplicated"] += 1
                after(self._travel(link), self._land, sender, receiver, frame)

    def _travel(self, link: Link) -> float:
        time = link.latency.draw(link.chance) + link.delays
        if self.reordering and link.chance.random() < self.reordering:
            self.counts["reordered"] += 1
            time += link.chance.random() * REORDERED_BY_S
        return time

    def _land(self, sender: ProcId, receiver: ProcId, frame: bytes) -> None:
        if self.links[sender, receiver].cuts:
            self.counts["cut off"] += 1  # it was on the way when the cable was cut
        else:
            self._arrive(sender, receiver, frame)

    def between(self, senders: Iterable[ProcId], receivers: Iterable[ProcId]) -> list[Link]:
        """The links from any of these to any of those."""
        there = tuple(receivers)
        return [self.links[a, b] for a in senders for b in there if a != b]

    def across(self, sides: Iterable[Iterable[ProcId]]) -> list[Link]:
        """The links between processes that no side has together."""
        together = [frozenset(side) for side in sides]
        return [link for (a, b), link in self.links.items() if not any(a in side and b in side for side in together)]
