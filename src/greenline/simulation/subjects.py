"""Subjects: the protocols that can be simulated, each with the rules that judge it and its seeded bugs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from greenline.database.procedures import PROCEDURES
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId, in_order
from greenline.kernel.ports import Service
from greenline.kernel.router import Layer
from greenline.noticeboard.core import Noticeboard
from greenline.noticeboard.messages import Message, Notice
from greenline.replication.core import Engine
from greenline.replication.messages import Record
from greenline.replication.port import Procedure
from greenline.replication.settings import Settings as EngineSettings
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling
from greenline.ring.settings import Reach, Settings
from greenline.simulation.adversary import Adversary, Stub, Temper
from greenline.simulation.coverage import cases, changes_of_a_ring
from greenline.simulation.engine_coverage import life_of_an_engine
from greenline.simulation.load import Load, finals
from greenline.simulation.mutants import engine as engine_mutants
from greenline.simulation.mutants import noticeboard as noticeboard_mutants
from greenline.simulation.mutants import ring as ring_mutants
from greenline.simulation.mutants.mutant import Mutant
from greenline.simulation.network import Latency
from greenline.simulation.requests import Request
from greenline.simulation.workload import draw_operations
from greenline.simulation.world import Build, World

OVER = "-over-"
"""Between a protocol and what it is simulated over, in the name of a subject."""


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
    furnish: Callable[[World, str], object] | None = None
    """What else every world of it has: its applications, its ports outside. It is given the seed."""
    workload: Callable[[Random, tuple[ProcId, ...], float], tuple[Request, ...]] | None = None
    """What is asked in a run, where that is not to multicast."""
    finals: Callable[[World], Iterable[dict[str, Any]]] | None = None
    """The rows at the end of a quiet run."""
    steps_factor: int = 1
    """How many times the usual steps a run may take before it heals."""
    blackouts: float = 0.0
    """In how many of its storms everybody crashes at about the same time."""
    comes_and_goes: bool = False
    """Its processes may be more or fewer in time: they join and leave."""

    @property
    def core(self) -> str:
        """The protocol."""
        return self.name.partition(OVER)[0]

    @property
    def over(self) -> str | None:
        """What it is simulated over, where there is a choice."""
        return self.name.partition(OVER)[2] or None

    def world(
        self,
        names: tuple[ProcId, ...],
        seed: str,
        latency: Latency,
        mutant: str | None = None,
        newcomers: tuple[ProcId, ...] = (),
    ) -> World:
        """A world of this protocol's processes; newcomers are down until they arrive."""
        world = World(
            names,
            seed,
            self.build if mutant is None else self.mutants[mutant].spoil(self.build),
            newcomers=newcomers,
            latency=latency,
            unsettled=self.unsettled,
            restless=self.restless,
        )
        if mutant is not None:
            world.database = self.mutants[mutant].database
        if self.furnish is not None:
            self.furnish(world, seed)
        return world


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
        return [Layer("ring", 1, RingCore(settings), AnyMessage, Ceiling, only_last_record=True)]

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


ENGINE_PROCEDURES = tuple(Procedure(each.name, each.version, each.digest) for each in PROCEDURES)
"""What every simulated database has."""
ENGINE_LIMITS: dict[str, Any] = {
    "procedures": ENGINE_PROCEDURES,
    "buffered": 32,
    "ongoing": 4,
    "unapplied": 8,
    "far": 12,
    "message_bytes": 1_000,
    "retain_after_white": 5,
    "retain_at_most": 40,
    "checkpoint_bytes": 2_000,
}
"""So small that a run of some seconds reaches them."""


BIRTH_BYTES = 16
"""Of what tells a server from another of its name."""


def _engine(below: Build, **settings: Any) -> Build:
    """Replicas over some provider of the group communication port."""

    def build(me: ProcId, names: tuple[ProcId, ...], chance: Random) -> list[Layer]:
        common: dict[str, Any] = {"servers": in_order(names)}
        engine = Engine(EngineSettings(**{**common, **settings}), chance.randbytes(BIRTH_BYTES))
        return [Layer("engine", 2, engine, None, Record), *below(me, names, chance)]

    return build


def _hostile(world: World, chance: Random) -> Adversary:
    """An adversary that lets replicas get somewhere: in some runs far, in others hardly."""
    change = chance.choice((0.0015, 0.004, 0.012))
    temper = Temper(
        step_s=0.0008,
        change=change,
        crash=change / 2,
        busy=0.004,
        spares_disks=False,
        gathering=0.4,
        repairing=0.03,
        targets=frozenset({"Construct", "RegPrim"}),  # some have installed, and the others do not know it
        spite=chance.choice((change, 0.1, 0.3)),
    )
    return Adversary(world, chance, temper)


_EXCHANGES = frozenset({"ExchangeStates", "ExchangeActions", "Construct", "No", "Un"})
ENGINE_OVER_ADVERSARY = Subject(
    name=f"engine{OVER}adversary",
    summary="the replication engine, over any execution that Extended Virtual Synchrony allows",
    build=_engine(_stub, **ENGINE_LIMITS),
    rules=("run", "evs", "provider", "replication", "access"),
    services=(Service.SAFE,),
    unsettled=_EXCHANGES,
    horizon=4.0,
    quiet_for=4.0,
    patience=60.0,
    restless=_EXCHANGES | {"TransPrim"},
    mutants=engine_mutants.MUTANTS,
    medium=_hostile,
    coverage=life_of_an_engine,
    furnish=Load,
    workload=draw_operations,
    finals=finals,
    steps_factor=4,
    blackouts=0.2,
    comes_and_goes=True,
)

ENGINE_OVER_RING = replace(
    ENGINE_OVER_ADVERSARY,
    name=f"engine{OVER}ring",
    summary="the replication engine over the Ring: the product's stack",
    build=_engine(RING.build, **ENGINE_LIMITS),
    quiet_for=8.0,
    restless=ENGINE_OVER_ADVERSARY.restless | RING.restless,
    medium=None,
)


def engine_with(**settings: Any) -> Subject:
    """The engine over the Ring with other settings."""
    return replace(ENGINE_OVER_RING, build=_engine(RING.build, **settings))


SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (NOTICEBOARD, ADVERSARY, RING, RING_MULTICAST, ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING)
}

CORES: dict[str, list[Subject]] = {}
"""The protocols that can be simulated, each with what it can be simulated over, the usual first."""
for _subject in SUBJECTS.values():
    CORES.setdefault(_subject.core, []).append(_subject)
