"""A plan: one run before it happens. It is all data: drawn from a seed, made shorter, saved, played again."""

from __future__ import annotations

from random import Random
from typing import Annotated, Literal

import msgspec

from greenline.kernel.identities import NAME, ProcId
from greenline.simulation.faults import Schedule, Time
from greenline.simulation.network import Latency
from greenline.simulation.profiles import draw_schedule
from greenline.simulation.requests import Request, draw_requests
from greenline.simulation.subjects import Subject

LEAST_BOUND = 3000
STEPS_A_LINK = 120
"""Everybody talks to everybody, so the bound on the steps of a run grows with the links: 3,000 for five processes."""
NAMES = "pqrstuvwxyzabcdefghijklmno"


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    core: str
    seed: int
    names: tuple[Annotated[ProcId, msgspec.Meta(pattern=NAME)], ...]
    profile: str = "calm"
    only: tuple[str, ...] = ()
    mutant: str | None = None
    horizon: Time = 4.0
    """Virtual seconds until the network heals, at the latest."""
    most_steps: Annotated[int, msgspec.Meta(ge=0)] = LEAST_BOUND
    """Inputs to processes until it heals, at the latest."""
    latency: Latency = Latency()
    schedule: Schedule = ()
    requests: tuple[Request, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ValueError("two of its processes have one name")

    @property
    def run(self) -> str:
        """What the run is called in a trace."""
        parts = [self.core, *([self.mutant] if self.mutant else []), *(self.only or [self.profile])]
        return "-".join([*parts, str(len(self.names)), str(self.seed)])

    def strangers(self) -> list[ProcId]:
        """Whom its faults and requests name that is not among its processes."""
        named = {request.process for request in self.requests}.union(*(fault.names() for fault in self.schedule))
        return sorted(named - set(self.names))


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
        horizon=subject.horizon,
        most_steps=subject.steps_factor * max(LEAST_BOUND, STEPS_A_LINK * nodes * nodes),
        latency=latency,
        schedule=draw_schedule(profile, chance, names, subject.horizon, only, subject.blackouts),
        requests=_draw_requests(subject, chance, names),
    )


def _draw_requests(subject: Subject, chance: Random, names: tuple[ProcId, ...]) -> tuple[Request, ...]:
    if subject.workload is not None:
        return subject.workload(chance, names, subject.horizon)
    return draw_requests(chance, names, subject.horizon, subject.services)
