"""A plan: one run before it happens. It is all data: drawn from a seed, made shorter, saved, played again."""

from __future__ import annotations

from random import Random
from typing import Annotated, Literal

import msgspec

from greenline.kernel.identities import NAME, ProcId
from greenline.simulation.comings import Arrival, Interception
from greenline.simulation.faults import Time
from greenline.simulation.network import Latency
from greenline.simulation.profiles import draw_schedule
from greenline.simulation.requests import Request, draw_requests
from greenline.simulation.schedule import Schedule
from greenline.simulation.subjects import Subject

LEAST_BOUND = 3000
STEPS_A_LINK = 120
"""Everybody talks to everybody, so the bound on the steps of a run grows with the links: 3,000 for five processes."""
NEWCOMERS = 0.6
"""In how many storms some come later, where processes come and go."""
NEED_NEWCOMERS = frozenset({Arrival.kind, Interception.kind})
NAMES = "pqrstuvwxyzabcdefghijklmno"


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    core: str
    seed: int
    names: tuple[Annotated[ProcId, msgspec.Meta(pattern=NAME)], ...]
    profile: str = "calm"
    only: tuple[str, ...] = ()
    mutant: str | None = None
    newcomers: tuple[Annotated[ProcId, msgspec.Meta(pattern=NAME)], ...] = ()
    """Who is no founder, and is down until it arrives."""
    horizon: Time = 4.0
    """Virtual seconds until the network heals, at the latest."""
    most_steps: Annotated[int, msgspec.Meta(ge=0)] = LEAST_BOUND
    """Inputs to processes until it heals, at the latest."""
    latency: Latency = Latency()
    schedule: Schedule = ()
    requests: tuple[Request, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.everybody)) < len(self.everybody):
            raise ValueError("two of its processes have one name")

    @property
    def everybody(self) -> tuple[ProcId, ...]:
        return self.names + self.newcomers

    @property
    def run(self) -> str:
        """What the run is called in a trace."""
        parts = [self.core, *([self.mutant] if self.mutant else []), *(self.only or [self.profile])]
        return "-".join([*parts, str(len(self.names)), str(self.seed)])

    def strangers(self) -> list[ProcId]:
        """Whom its faults and requests name that is not among its processes."""
        named = {request.process for request in self.requests}.union(*(fault.names() for fault in self.schedule))
        return sorted(named - set(self.everybody))


def names_for(nodes: int) -> tuple[ProcId, ...]:
    """p, q, r, ... as the papers call them, then n27, n28, ..."""
    return tuple(NAMES[n] if n < len(NAMES) else f"n{n + 1}" for n in range(nodes))


def draw_plan(
    subject: Subject,
    seed: int,
    nodes: int,
    profile: str,
    only: tuple[str, ...] = (),
    mutant: str | None = None,
) -> Plan:
    """The plan that a seed stands for: every choice comes from it."""
    names = names_for(nodes)
    newcomers = _draw_newcomers(subject, seed, nodes, profile, only)
    chance = Random(f"{subject.name}/{profile}/{','.join(only)}/{nodes}/{seed}")
    kinds: tuple[Literal["uniform", "exponential", "heavy"], ...] = ("uniform", "exponential", "heavy")
    kind = "exponential" if profile == "calm" else chance.choice(kinds)
    is_calm = profile == "calm"
    latency = Latency(
        kind,
        floor_s=0.0005,
        spread_s=0.0005 if is_calm else chance.uniform(0.0002, 0.004),
        unevenness=0.0 if is_calm else chance.choice((0.0, chance.uniform(1, 20))),
    )
    return Plan(
        core=subject.name,
        seed=seed,
        names=names,
        profile=profile,
        only=only,
        mutant=mutant,
        newcomers=newcomers or (),
        horizon=subject.horizon,
        most_steps=subject.steps_factor * max(LEAST_BOUND, STEPS_A_LINK * (nodes + len(newcomers or ())) ** 2),
        latency=latency,
        schedule=draw_schedule(profile, chance, names, subject.horizon, only, subject.blackouts, newcomers),
        requests=_draw_requests(subject, chance, names + (newcomers or ())),
    )


def _draw_newcomers(
    subject: Subject, seed: int, nodes: int, profile: str, only: tuple[str, ...]
) -> tuple[ProcId, ...] | None:
    """Who comes later; None where nobody ever does."""
    if not subject.comes_and_goes:
        return None
    chance = Random(f"{subject.name}/{profile}/{nodes}/{seed}/newcomers")
    is_drawn = chance.random() < NEWCOMERS and profile == "storm"
    if any(kind in NEED_NEWCOMERS for kind in only) or (is_drawn and not only):
        return names_for(nodes + chance.randint(1, 2))[nodes:]
    return ()


def _draw_requests(subject: Subject, chance: Random, names: tuple[ProcId, ...]) -> tuple[Request, ...]:
    if subject.workload is not None:
        return subject.workload(chance, names, subject.horizon)
    return draw_requests(chance, names, subject.horizon, subject.services)
