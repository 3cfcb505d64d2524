"""The network: latency, loss, duplication, reordering, delay spikes and cuts, link by link.

Every directed link has a generator of its own, so that what happens on one does not change what happens on
another: a run that is made shorter stays similar. Faults compose: a link is cut while any fault cuts it, rates of
loss combine as independent causes do, delays add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Annotated, Literal

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

    kind: Literal["constant", "uniform", "exponential", "heavy"] = "exponential"
    floor_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0005
    spread_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0005
    unevenness: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Sites are not all alike: two of them are up to so many times farther apart than the nearest."""

    def between(self, a: ProcId, b: ProcId, seed: str) -> Latency:
        """The latency of one link; the same in both directions."""
        if not self.unevenness:
            return self
        near, far = sorted((a, b))
        factor = 1 + self.unevenness * Random(f"{seed}/distance/{near}/{far}").random()
        return msgspec.structs.replace(self, floor_s=self.floor_s * factor)

    def draw(self, chance: Random) -> float:
        """How long one packet takes."""
        match self.kind:
            case "constant":
                return self.floor_s
            case "uniform":
                return self.floor_s + self.spread_s * chance.random()
            case "exponential":
                return self.floor_s + chance.expovariate(1.0) * self.spread_s
            case "heavy":
                return self.floor_s + self.spread_s * min(chance.paretovariate(1.5) - 1.0, 100.0)


class Link:
    """One direction between two processes, as it is now."""

    __slots__ = ("chance", "cuts", "delays", "last_arrival", "latency")

    def __init__(self, latency: Latency, chance: Random) -> None:
        self.latency = latency
        self.chance = chance
        self.cuts = 0
        self.delays = 0.0
        self.last_arrival = 0.0


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
        self.tamper: Callable[[ProcId, ProcId, bytes], tuple[float, ...]] | None = None
        """What a scenario does to single packets: how much later than usual each copy of one comes, if any does."""
        self._arrive = arrive
        self.links = {
            (a, b): Link(latency.between(a, b, seed), Random(f"{seed}/link/{a}/{b}"))
            for a in names
            for b in names
            if a != b
        }

    def transmit(self, sender: ProcId, to: Iterable[ProcId], frame: bytes) -> None:
        at = self.agenda.at
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
            if self.tamper is not None and (delays := self.tamper(sender, receiver, frame)) != (0.0,):
                counts["tampered with"] += 1
                for delay in delays:
                    at(self._arrival(link) + delay, self._land, sender, receiver, frame)
                continue
            at(self._arrival(link), self._land, sender, receiver, frame)
            if self.duplication and chance.random() < self.duplication:
                counts["duplicated"] += 1
                at(self._arrival(link), self._land, sender, receiver, frame)

    def _arrival(self, link: Link) -> float:
        """When a packet that leaves now arrives: not before the one that left before it, unless it is reordered."""
        arrival = self.agenda.now + link.latency.draw(link.chance) + link.delays
        if self.reordering and link.chance.random() < self.reordering:
            self.counts["reordered"] += 1
            return arrival + link.chance.random() * REORDERED_BY_S
        link.last_arrival = max(link.last_arrival, arrival)
        return link.last_arrival

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
