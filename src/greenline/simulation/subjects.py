"""Subjects: the protocols that can be simulated, each with the rules that judge it and its seeded bugs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from greenline.kernel.evidence import Row
from greenline.kernel.ports import Service
from greenline.kernel.router import Layer
from greenline.noticeboard.core import Noticeboard
from greenline.noticeboard.messages import Message, Notice
from greenline.simulation.adversary import Adversary, Stub
from greenline.simulation.coverage import cases
from greenline.simulation.mutants import noticeboard as noticeboard_mutants
from greenline.simulation.mutants.mutant import Mutant
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
    mutants: dict[str, Mutant] = field(default_factory=dict)
    medium: Callable[[World, Random], object] | None = None
    """What sits in the world beside the processes."""
    coverage: Callable[[Sequence[Row]], Counter[str]] | None = None
    """What else is counted, from the trace of a run."""

    def build_for(self, mutant: str | None) -> Build:
        return self.build if mutant is None else self.mutants[mutant].spoil(self.build)


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
    rules=("run", "evs"),
    services=(Service.BASIC, Service.CAUSAL, Service.AGREED, Service.SAFE, Service.SAFE),
    unsettled=frozenset(),
    horizon=4.0,
    quiet_for=1.0,
    patience=60.0,
    medium=Adversary,
    coverage=cases,
)

SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in (NOTICEBOARD, ADVERSARY)}
