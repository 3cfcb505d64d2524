"""Requests: what the users of a run ask for, as data."""

from __future__ import annotations

from random import Random
from typing import Annotated

import msgspec

from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.port import Level, Reads
from greenline.simulation.faults import Time

FLOOD = 60


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An application asks its process to multicast; one that is down or paused is not asked. Or a client wants
    something of a replica, in the words of `simulation.wishes`; it goes elsewhere if this one does not answer."""

    at: Time
    process: ProcId
    text: str
    service: Service
    level: Level | None = None
    """Of what is asked of a replica."""
    window: Annotated[int, msgspec.Meta(ge=1)] = 1
    """So much of what its client has asked may be unanswered when it is asked."""
    reads: Reads | None = None
    """What a query may see."""
    is_patient: bool = True
    """A query that cannot be answered at once may wait."""

    def __str__(self) -> str:
        if self.level is not None or self.reads is not None:
            return f"{self.process} is asked {self.text!r}, {', '.join(filter(None, (self.level, self.reads)))}"
        return f"{self.process} multicasts {self.text!r}, {self.service}"


def draw_requests(
    chance: Random, names: tuple[ProcId, ...], seconds: float, services: tuple[Service, ...]
) -> tuple[Request, ...]:
    """A few dozen messages at random times, some in bursts, all different; in some runs more than a port takes."""
    requests: list[Request] = []
    flood = chance.randrange(0, 60)
    for number in range(chance.randint(10, 25)):
        at = chance.uniform(0.0, seconds)
        process = chance.choice(names)
        burst = FLOOD if number == flood else chance.choice((1, 1, 1, chance.randint(2, 12)))
        for _ in range(burst):
            text = f"m{len(requests) + 1}"
            requests.append(Request(at, process, text, chance.choice(services)))
    return tuple(sorted(requests, key=lambda request: request.at))
