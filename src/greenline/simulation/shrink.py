"""Shrinking: a failing plan made as short as it can be while it still fails in the same way.

Leaves out processes, faults and requests (delta debugging: halves first, then smaller parts), then makes what is
left plainer. Every candidate is played; nothing is assumed of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from greenline.kernel.identities import ProcId
from greenline.simulation.comings import Interception, Removal
from greenline.simulation.faults import Ambush, Blackout, Crash
from greenline.simulation.network import Latency
from greenline.simulation.plan import Plan
from greenline.simulation.requests import Request
from greenline.simulation.schedule import AnyFault

T = TypeVar("T")
Fails = Callable[[Plan], bool]
"""Does this plan still fail in the way that is being looked for?"""
LEAST_HORIZON = 0.1
RIGHT_AFTER_S = 0.0001


def shrink(plan: Plan, fails: Fails, most_plays: int = 1000) -> Plan:
    """The shortest plan that was found with so many plays; `fails(plan)` must hold."""
    plays = 0

    def still_fails(candidate: Plan) -> bool:
        nonlocal plays
        plays += 1
        return plays <= most_plays and fails(candidate)

    return _shrink(plan, still_fails)


def _shrink(plan: Plan, fails: Fails) -> Plan:
    while True:
        before = plan
        plan = _fewer_processes(plan, fails)
        plan = _fewer_items(plan, fails)
        for simpler in _simpler(plan):
            if fails(simpler):
                plan = simpler
                break
        if plan == before:
            return plan


def steps(plan: Plan) -> list[str]:
    """What is left to happen, in order, for people."""
    happenings: list[tuple[float, str]] = [(fault.at, str(fault)) for fault in plan.schedule]
    happenings += [(fault.until, fault.over()) for fault in plan.schedule if fault.until < plan.horizon]
    happenings += [(each.at, str(each)) for each in plan.requests]
    return [f"{at:6.3f} s  {words}" for at, words in sorted(happenings)]


def _fewer_processes(plan: Plan, fails: Fails) -> Plan:
    for name in reversed(plan.everybody):
        if len(plan.names) > 2 or name in plan.newcomers:
            smaller = _without(plan, name)
            if fails(smaller):
                plan = smaller
    return plan


def _without(plan: Plan, name: ProcId) -> Plan:
    return msgspec.structs.replace(
        plan,
        names=tuple(each for each in plan.names if each != name),
        newcomers=tuple(each for each in plan.newcomers if each != name),
        schedule=tuple(left for fault in plan.schedule if (left := fault.without(name)) is not None),
        requests=tuple(request for request in plan.requests if request.process != name),
    )


def _fewer_items(plan: Plan, fails: Fails) -> Plan:
    """Delta debugging over everything that happens."""
    items: list[AnyFault | Request] = [*plan.schedule, *plan.requests]
    parts = 2
    while items:
        for kept in _all_but_one_part(items, parts):
            candidate = _with(plan, kept)
            if fails(candidate):
                items, plan, parts = kept, candidate, max(2, parts - 1)
                break
        else:
            if parts >= len(items):
                break
            parts = min(len(items), parts * 2)
    return plan


def _all_but_one_part(items: Sequence[T], parts: int) -> Iterator[list[T]]:
    size = -(-len(items) // parts)
    for begin in range(0, len(items), size):
        yield [*items[:begin], *items[begin + size :]]


def _with(plan: Plan, items: Sequence[AnyFault | Request]) -> Plan:
    return msgspec.structs.replace(
        plan,
        schedule=tuple(item for item in items if not isinstance(item, Request)),
        requests=tuple(item for item in items if isinstance(item, Request)),
    )


def _simpler(plan: Plan) -> Iterator[Plan]:
    """Plans a little plainer than this one."""
    ends = [fault.until for fault in plan.schedule] + [request.at for request in plan.requests]
    horizon = max(LEAST_HORIZON, *ends) if ends else LEAST_HORIZON
    if horizon < plan.horizon:
        yield msgspec.structs.replace(plan, horizon=horizon)
    if plan.latency.kind != "constant":
        yield msgspec.structs.replace(plan, latency=Latency("constant", 0.001))
    yield from _accidents_on_the_spot(plan)
    for place, fault in enumerate(plan.schedule):
        for plainer in _plainer(fault):
            yield _with_fault(plan, place, plainer)


def _accidents_on_the_spot(plan: Plan) -> Iterator[Plan]:
    """A crash right after a request of the same process, in place of one whose timing has to be hit."""
    for place, fault in enumerate(plan.schedule):
        crash = fault.fault if isinstance(fault, Ambush) else fault
        if isinstance(crash, Crash) and (crash.orders or crash is not fault):
            for request in plan.requests:
                if request.process == crash.process:
                    sooner = msgspec.structs.replace(crash.moved_to(request.at + RIGHT_AFTER_S), orders=0)
                    yield _with_fault(plan, place, sooner)


def _with_fault(plan: Plan, place: int, fault: AnyFault) -> Plan:
    return msgspec.structs.replace(plan, schedule=(*plan.schedule[:place], fault, *plan.schedule[place + 1 :]))


def _plainer(fault: AnyFault) -> Iterator[AnyFault]:
    if isinstance(fault, Ambush):
        yield fault.fault.moved_to(fault.at)
    if isinstance(fault, Blackout):
        plain = tuple(Crash(at=each.at, until=each.until, process=each.process) for each in fault.crashes)
        if plain != fault.crashes:
            yield msgspec.structs.replace(fault, crashes=plain)
        if len(fault.crashes) == 1:
            yield fault.crashes[0].moved_to(fault.at + fault.crashes[0].at)
    if isinstance(fault, Removal) and (fault.keep or fault.tear or fault.is_void):
        yield msgspec.structs.replace(fault, keep=0.0, tear=False, is_void=False)
    if isinstance(fault, Interception) and (fault.delay or fault.keep):
        yield msgspec.structs.replace(fault, delay=0.0, keep=0.0)
    if isinstance(fault, Crash):
        if fault.orders:
            yield msgspec.structs.replace(fault, orders=0)
        if fault.keep or fault.tear:
            yield msgspec.structs.replace(fault, keep=0.0, tear=False)
