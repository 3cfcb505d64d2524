"""The databases of a simulated cluster: one for each process, across its lives, as it is its disk.

Requests are served in order, one at a time, each after a while; its answer comes a while later. A process that dies
between the two has committed and does not know it. Who dies with the power may find less than it had committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from greenline.database.memory import MemorySqlite
from greenline.database.witness import rows_of
from greenline.kernel.database import DATABASE, Answer, Digest, DigestOf, Query, Refused, Rows
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Ask
from greenline.simulation.process import Process
from greenline.simulation.world import World

SERVED_IN_S = (0.00005, 0.001)
"""Shortest and longest time for a request, and for its answer to come back; a slow disk has a slow database."""
SLOW_ONE_IN = 40
SLOW_FOR_S = 0.03
COUNTERS = ("c1", "c2")
TIMED = ("t1", "t2")
"""Counters and registers with a timestamp: what they come to is told in the end."""


@dataclass
class Place:
    """One database, and what it is asked."""

    database: MemorySqlite
    chance: Random
    waiting: deque[Ask] = field(default_factory=deque)
    last_answer: float = 0.0
    """When: answers come in the order of the requests."""


class Databases:
    """Sits in a world as the port `database` of all its processes."""

    def __init__(self, world: World, seed: str) -> None:
        self._world = world
        self.places = {name: _place(world, Random(f"{seed}/database/{name}")) for name in world.names}
        world.ports[DATABASE] = self.asked
        world.at_death.append(self.died)

    def asked(self, name: ProcId, ask: Ask) -> None:
        place = self.places[name]
        self._world[name].working += 1
        place.waiting.append(ask)
        if len(place.waiting) == 1:
            self._serve_next(name)

    def died(self, process: Process, with_the_power: bool) -> None:
        """What was not committed is gone; with the power perhaps also what was not durable."""
        place = self.places[process.name]
        place.waiting.clear()
        if with_the_power and place.chance.random() < 0.5:
            self._world.counts["databases that lost power"] += 1
            place.database.lose_power()
        else:
            place.database.kill()

    def finals(self) -> Iterator[tuple[ProcId, int, str, str]]:
        """What each database comes to, of those who are up: its owner, its position, its digest, what it counts."""
        for name, place in self.places.items():
            if self._world[name].is_running:
                asked = (*(f"count {counter}" for counter in COUNTERS), *(f"get {timed}" for timed in TIMED))
                contents = " ".join(self.query(name, each) for each in asked)
                yield name, place.database.position, self.digest(name), contents

    def query(self, name: ProcId, request: str) -> str:
        answer = self.places[name].database.answer(Query(request.encode()))
        assert isinstance(answer, Rows), answer
        return answer.rows.decode()

    def digest(self, name: ProcId) -> str:
        answer = self.places[name].database.answer(DigestOf())
        assert isinstance(answer, Digest)
        return answer.digest.hex()

    def _serve_next(self, name: ProcId) -> None:
        self._world[name].later(self._a_while(name), self._serve, name)

    def _serve(self, name: ProcId) -> None:
        place, process = self.places[name], self._world[name]
        ask = place.waiting.popleft()
        answer = place.database.answer(ask.request)
        self._witness(process, ask, answer)
        place.last_answer = max(place.last_answer, self._world.agenda.now + self._a_while(name))
        args = (ask.layer, ask.call, answer)
        self._world.agenda.at(place.last_answer, process.finish, process.lives, "answered", args)
        if place.waiting:
            self._serve_next(name)

    def _a_while(self, name: ProcId) -> float:
        chance = self.places[name].chance
        while_s = SLOW_FOR_S * chance.random() if not chance.randrange(SLOW_ONE_IN) else chance.uniform(*SERVED_IN_S)
        return while_s * self._world[name].disk.slowness

    def _witness(self, process: Process, ask: Ask, answer: Answer) -> None:
        for kind, columns in rows_of(ask.request, answer):
            process.witness(DATABASE, kind, **columns)
        if isinstance(answer, Refused):
            self._world.counts["refused by a database"] += 1


def _place(world: World, chance: Random) -> Place:
    return Place(world.database(image_every=chance.choice((1, 2, 4, 8))), chance)
