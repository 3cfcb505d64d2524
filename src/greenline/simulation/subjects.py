"""Subjects: the protocols that can be simulated, each with the rules that judge it and its seeded bugs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.kernel.router import Layer
from greenline.noticeboard.core import Noticeboard
from greenline.noticeboard.messages import Message, Notice
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling
from greenline.ring.settings import Reach, Settings
from greenline.simulation.adversary import Adversary, Stub
from greenline.simulation.coverage import cases, changes_of_a_ring
from greenline.simulation.mutants import noticeboard as noticeboard_mutants
from greenline.simulation.mutants import ring as ring_mutants
from greenline.simulation.mutants.mutant import Mutant
from greenline.simulation.network import Latency
from greenline.simulation.world import Build, World


@dataclass(frozen=True)
class Subject:
    name: str
    summary: str
    build: Build
    rules: tuple[str, ...]
    """Folders of `spec/` whose rules its runs must keep."""
    services: tuple[Service, ...]
    unsettled: frozenset[str]
    """Phases in which membership is changing: where an ambush strikes."""
    horizon: float
    """Virtual seconds that the faults last."""
    quiet_for: float
    """A run is quiet when nothing has changed for so long: several times the slowest timer."""
    patience: float
    """How long after healing a run may take to become quiet, before it counts as stuck."""
    restless: frozenset[str] = frozenset()
    """Phases that end by themselves: while some process is in one, the run is not quiet."""
    mutants: dict[str, Mutant] = field(default_factory=dict)
    medium: Callable[[World, Random], object] | None = None
    """What sits in the world beside the processes."""
    coverage: Callable[[Sequence[Row]], Counter[str]] | None = None
    """What else is counted, from the trace of a run."""

    def world(self, names: tuple[ProcId, ...], seed: str, latency: Latency, mutant: str | None = None) -> World:
        """A world of this protocol's processes."""
        return World(
            names,
            seed,
            self.build if mutant is None else self.mutants[mutant].spoil(self.build),
            latency=latency,
            unsettled=self.unsettled,
            restless=self.restless,
        )


def _noticeboard(*_: object) -> list[Layer]:
    return [Layer("noticeboard", 1, Noticeboard(), Message, Notice)]


NOTICEBOARD = Subject(
    name="noticeboard",
    summary="the example protocol: everybody reads every notice, in each author's order",
    build=_noticeboard,
    rules=("run", "noticeboard"),
    services=(Service.BASIC,),
    unsettled=frozenset({"Exchanging"}),
    horizon=4.0,
    quiet_for=2.0,
    patience=60.0,
    mutants=noticeboard_mutants.MUTANTS,
)


def _stub(*_: object) -> list[Layer]:
    return [Layer("adversary", 1, Stub(), None, None)]


ADVERSARY = Subject(
    name="adversary",
    summary="every execution that Extended Virtual Synchrony allows, in the nastiest legal ways",
    build=_stub,
    rules=("run", "evs", "provider"),
    services=(Service.BASIC, Service.CAUSAL, Service.AGREED, Service.SAFE, Service.SAFE),
    unsettled=frozenset(),
    horizon=4.0,
    quiet_for=1.0,
    patience=60.0,
    medium=Adversary,
    coverage=cases,
)


def _ring(settings: Settings) -> Build:
    def build(*_: object) -> list[Layer]:
        return [Layer("ring", 1, RingCore(settings), AnyMessage, Ceiling)]

    return build


_MEMBERSHIP_CHANGES = frozenset({"Gather", "Commit", "Form", "EVS"})
RING = Subject(
    name="ring",
    summary="the Ring: ordered multicast with Extended Virtual Synchrony; a datagram to each member",
    build=_ring(Settings()),
    rules=("run", "evs", "provider"),
    services=(Service.BASIC, Service.CAUSAL, Service.AGREED, Service.SAFE, Service.SAFE),
    unsettled=_MEMBERSHIP_CHANGES,
    horizon=4.0,
    quiet_for=8.0,
    patience=60.0,
    restless=_MEMBERSHIP_CHANGES,
    mutants=ring_mutants.MUTANTS,
    coverage=changes_of_a_ring,
)


def ring_with(settings: Settings) -> Subject:
    """The Ring with other settings."""
    return replace(RING, build=_ring(settings))


RING_MULTICAST = replace(
    RING,
    name="ring-multicast",
    summary="the Ring, when one datagram reaches everybody, strangers too; packets so small that messages are cut",
    build=_ring(Settings(reach=Reach.MULTICAST, accelerated=8, packet_bytes=8)),
)

SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in (NOTICEBOARD, ADVERSARY, RING, RING_MULTICAST)}
