"""The load on replicas: brings databases, clients and operators into a world, and says what they come to in the end."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from greenline.database.procedures import PROCEDURES
from greenline.kernel.actions import Action
from greenline.kernel.database import Activate, Expire
from greenline.kernel.identities import ProcId
from greenline.replication.core import Boot, Engine
from greenline.replication.port import Level
from greenline.replication.replica import Replica
from greenline.simulation.clients import Client
from greenline.simulation.databases import Databases
from greenline.simulation.desk import Desk, Submission
from greenline.simulation.mutants.mutant import Wrapped
from greenline.simulation.operators import Operators
from greenline.simulation.process import Process
from greenline.simulation.requests import Request
from greenline.simulation.wishes import Activation, Expiry, wish_of
from greenline.simulation.world import World

STOPPED_AFTER_S = 0.2
"""At most: who was told that it has left is stopped for good so soon."""


class Load:
    def __init__(self, world: World, seed: str) -> None:
        self.world = world
        self.databases = Databases(world, seed)
        self.operators = Operators(world, seed)
        self.clients: dict[str, Client] = {}
        self._seed = seed
        self._chance = Random(f"{seed}/load")
        self._names = 0
        world.application = lambda process: Desk(process, self)
        world.at_death.append(self._died)
        world.complaints.append(self._complaints)
        for process in world.processes.values():
            process.app = world.application(process)

    def take(self, desk: Desk, request: Request) -> bool:
        """Somebody wants something, preferably of this server."""
        wish = wish_of(request)
        match wish:
            case Activation(name, version):
                digest = next(each.digest for each in PROCEDURES if (each.name, each.version) == (name, version))
                self.operators.ask(Activate(name, version, digest), desk.process.name)
            case Expiry(behind):
                before = max(place.database.position for place in self.databases.places.values()) - behind
                if before > 0:
                    self.operators.ask(Expire(before), desk.process.name)
            case _:
                self._client(wish.client).want(wish, request.window, desk)
        return True

    def _client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = Client(self.world, name, Random(f"{self._seed}/client/{name}"))
        return self.clients[name]

    def submit_together(self, desk: Desk, operations: tuple[str, ...], level: Level) -> int:
        """As a new client of this server, who asks once."""
        session = self.new_client(desk)
        actions = tuple(Action(session, number, each.encode()) for number, each in enumerate(operations, start=1))
        return desk.submit(Submission(actions, operations, level))

    def new_client(self, desk: Desk) -> str:
        """The name of one who asks this server, once."""
        self._names += 1
        return f"{desk.process.name}-{self._names}"

    def let_go(self, name: ProcId) -> None:
        """It was told that it has left."""
        self.world.agenda.after(self._chance.uniform(0.0, STOPPED_AFTER_S), self.world.part_with, name)

    def _died(self, process: Process, _: bool) -> None:
        for client in self.clients.values():
            client.lose(process.name)
        if self.world.is_healed and has_left(self.world, process.name):
            # It was down when the others went on without it: they refuse it, and it halts.
            self.world.agenda.after(0.0, self.world.part_with, process.name)

    def _complaints(self) -> Iterator[str]:
        for name in self.world.living:
            if not is_replica(self.world, name):
                yield f"{name} is no replica"
            elif has_left(self.world, name):
                yield f"{name} has left, and was not told"
        for client in self.clients.values():
            yield from client.complaints()
        yield from self.operators.complaints()


def finals(world: World) -> Iterator[dict[str, Any]]:
    """The columns of the last rows of a quiet run, one for each database of a replica."""
    desk = world[world.names[0]].app
    assert isinstance(desk, Desk), "replicas have clients"
    for name, position, digest, contents in desk.load.databases.finals():
        if is_replica(world, name):
            columns = {"members": name, "position": position, "digest": digest, "sub": reds(world, name)}
            yield {**columns, "detail": contents}


def is_replica(world: World, name: ProcId) -> bool:
    """Is it up, and no newcomer any more?"""
    return world[name].is_running and not replica_of(world, name).is_new


def has_left(world: World, name: ProcId) -> bool:
    """Do others know that it has left?"""
    others = [replica_of(world, other) for other in world.living if other != name and world[other].is_running]
    return any(other.roster.is_gone(name) for other in others)


def reds(world: World, name: ProcId) -> int:
    """How many bundles a replica has that are not green, also its own that were not delivered to it yet."""
    replica = replica_of(world, name)
    mine = replica.red_cut.get(name, 0)
    marked = sum(cut - replica.green_cut.get(server, 0) for server, cut in replica.red_cut.items())
    return marked + sum(index > mine for index in replica.ongoing)


def replica_of(world: World, name: ProcId) -> Replica:
    """What a process knows as a replica; it must be up."""
    router = world[name].router
    core = router.layers[0].core if router is not None else None
    while isinstance(core, Wrapped):
        core = core.core
    if not isinstance(core, Engine) or isinstance(core.phase, Boot):
        raise TypeError(f"{name} is no replica, or is down")
    return core.phase.server.replica
