"""Listening to replicas: what their engines say through the group communication port, whoever provides it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from greenline.kernel.core import Core
from greenline.kernel.effects import Effect
from greenline.kernel.events import Downcall, Event, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Busy, Multicast, Service
from greenline.kernel.router import Router
from greenline.replication.messages import Bundle, Retrans, Spoken, decode
from greenline.replication.port import BundleId
from greenline.simulation.world import World


@dataclass(frozen=True)
class Said:
    process: ProcId
    incarnation: int
    at: int
    """How many rows the run had by then."""
    time: float
    service: Service
    message: Spoken


class Ear:
    """Stands where the provider of the port stood, and passes everything on."""

    def __init__(self, core: Core, world: World, router: Router, said: list[Said]) -> None:
        self.core = core
        self._world = world
        self._router = router
        self._said = said

    @property
    def phase(self) -> Any:
        return self.core.phase

    def handle(self, now: float, event: Event) -> list[Effect]:
        effects = self.core.handle(now, event)
        if isinstance(event, Downcall) and isinstance(event.payload, Multicast):
            call, router = event.payload, self._router
            is_refused = any(isinstance(each, Upcall) and isinstance(each.payload, Busy) for each in effects)
            message = decode(call.payload)
            assert message is not None, "an engine says what engines say"
            if not is_refused:
                at, time = len(self._world.rows), self._world.agenda.now
                self._said.append(Said(router.me, router.incarnation, at, time, call.service, message))
        return effects


def listen(world: World) -> list[Said]:
    """All that the engines of this world say from now on, in the order in which it is said."""
    said: list[Said] = []
    build = world.build

    def with_ear(router: Router) -> Router:
        below = router.layers[-1]
        below.core = Ear(below.core, world, router, said)
        return router

    for process in world.processes.values():
        if process.router is not None:
            with_ear(process.router)
    world.build = lambda name, life: with_ear(build(name, life))  # type: ignore[method-assign]
    return said


def of(kind: type[Any], said: list[Said]) -> list[Any]:
    return [each.message for each in said if isinstance(each.message, kind)]


def retransmitted(said: list[Said]) -> Iterator[BundleId]:
    """Every bundle whose body travels in a retransmission, as often as it does."""
    for message in of(Retrans, said):
        bodies: list[Bundle] = [*message.reds]
        if message.greens is not None:
            bodies += [entry.body for entry in message.greens.entries if entry.body is not None]
        yield from (body.id for body in bodies)
