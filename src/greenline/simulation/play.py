"""Play a plan: faults and requests until the horizon, then healing, then on until the run is quiet or stuck."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from random import Random

import msgspec

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.simulation.packets import record_packets
from greenline.simulation.plan import Plan
from greenline.simulation.requests import Request
from greenline.simulation.subjects import SUBJECTS
from greenline.simulation.world import World

FIRST_STARTS_S = 0.010
"""Processes start one after the other, so far apart."""
STEPS_AFTER_HEALING = 20
"""A run that takes so many times its bound of steps after healing counts as stuck."""


class End(StrEnum):
    QUIET = "quiet"
    STUCK = "stuck"


@dataclass(frozen=True)
class Run:
    """What a plan came to."""

    plan: Plan
    rows: list[Row]
    end: End
    counts: Counter[str]

    @property
    def trace_hash(self) -> str:
        return blake2b(msgspec.msgpack.encode(self.rows), digest_size=16).hexdigest()


def prepare(plan: Plan) -> World:
    """The world of a plan, with everything on its agenda that will befall it."""
    subject = SUBJECTS[plan.core]
    seed = f"{plan.core}/{plan.seed}"
    world = subject.world(plan.names, seed, plan.latency, plan.mutant, plan.newcomers)
    if subject.medium is not None:
        subject.medium(world, Random(f"{seed}/medium"))
    world.schedule(plan.schedule)  # first: a clock is skewed before its process starts
    for place, name in enumerate(plan.names):
        world.agenda.at(FIRST_STARTS_S * place, world[name].start_if_wanted)
    for request in plan.requests:
        world.agenda.at(request.at, _ask, world, request)
    return world


def play(plan: Plan, with_packets: bool = False) -> Run:
    """The same plan, the same run: bit for bit, in any process."""
    subject = SUBJECTS[plan.core]
    world = prepare(plan)
    if with_packets:
        record_packets(world)
    agenda = world.agenda
    while (due := agenda.next_time()) is not None and due <= plan.horizon and world.steps < plan.most_steps:
        agenda.step()
    world.heal()
    deadline = agenda.now + subject.patience
    most_steps = world.steps + STEPS_AFTER_HEALING * plan.most_steps
    is_quiet = world.run_until_quiet(subject.quiet_for, deadline, most_steps)
    waiting = world.still_waiting()
    end = End.QUIET if is_quiet and not waiting else End.STUCK
    detail = f"nothing has changed for {subject.quiet_for:g} s" if is_quiet else "still changing, long after healing"
    if waiting:
        detail = f"{detail}; {'; '.join(waiting)}"
    if end is End.QUIET and subject.finals is not None:
        for columns in subject.finals(world):
            world.note(evidence.FINAL, **columns)
    world.note(evidence.QUIET if end is End.QUIET else evidence.STUCK, detail, digest=f"{world.digest:08x}")
    counts = world.counts + world.network.counts
    counts["steps"] = world.steps
    if subject.coverage is not None:
        counts += subject.coverage(world.rows)
    return Run(plan, world.rows, end, counts)


def _ask(world: World, request: Request) -> None:
    if not world[request.process].app.take(request):
        world.counts["requests to nobody"] += 1
