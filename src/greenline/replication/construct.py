"""Construct: all have agreed to the attempt; when everybody's CPC is here, the component is installed (A.9, A.10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored, Trace
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service, TransitionalConf
from greenline.replication.knowledge import distinguished
from greenline.replication.messages import CPC, Prim, Yellow
from greenline.replication.moves import ToConstruct, ToNo, ToRegPrim
from greenline.replication.replica import (
    Replica,
    force,
    mark_green,
    raise_line,
    red_order,
    vulnerability,
    write_knowledge,
)
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Meant, Told


class Agreeing(Protocol):
    """Construct and No: CPCs are counted."""

    server: Server
    component: Component
    queue: bytes
    cpcs: dict[ProcId, CPC]


@dataclass(slots=True)
class Construct:
    server: Server
    component: Component
    queue: bytes
    """What all who install must have: nothing changes it until they do."""
    cpcs: dict[ProcId, CPC] = field(default_factory=dict)

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.component.place

    def handle(self, told: Told, out: list[Effect]) -> ToRegPrim | ToNo | None:
        match told:
            case CPC() as cpc if cpc.meeting == self.place.meeting:
                if count(self, cpc):
                    install(self.server.replica, self.component, "Construct", out)
                    return ToRegPrim(self.component)
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case TransitionalConf():
                return ToNo(self.component, self.queue, self.cpcs)
            case _:
                raise Impossible(self, told)
        return None


def enter(server: Server, move: ToConstruct, out: list[Effect]) -> tuple[Construct, None]:
    """Our vulnerability, and all that we have in common, is durable before our CPC leaves."""
    replica, component = server.replica, move.component
    gate = force(replica, out)
    attempt = replica.vulnerable.prim_index, replica.vulnerable.attempt_index
    queue = replica.queue_digest()
    cpc = CPC(component.place.meeting, replica.me, *attempt, queue)
    witness = Trace("cpc", members=component.members, position=attempt[0], sub=attempt[1])
    server.outbox.say(cpc, Service.SAFE, gate, witness)
    return Construct(server, component, queue), None


def count(phase: Agreeing, cpc: CPC) -> bool:
    """One more has agreed; are these all? Whoever agrees has our queue on its disk."""
    assert cpc.queue == phase.queue, f"{cpc.server} would install another queue than ours"
    phase.cpcs[cpc.server] = cpc
    phase.server.replica.promised[cpc.server] = cpc.prim_index, cpc.attempt_index
    return len(phase.cpcs) == len(phase.component.members)


def install(replica: Replica, component: Component, state: str, out: list[Effect]) -> None:
    """First the yellow bundles, then the reds: from here on this is a primary component (A.10)."""
    for server in component.members:
        if server != replica.me:
            raise_line(replica, server, replica.green, out)  # each CPC waited for a barrier over all this
    if replica.yellow.is_valid:
        for bundle in replica.yellow.ids:
            mark_green(replica, bundle, "OR-1.2", state, out)
    replica.yellow = Yellow()
    index = replica.prim.prim_index + 1
    replica.prim = msgspec.structs.replace(replica.prim, prim_index=index, attempt_index=replica.attempt_index)
    replica.attempt_index = 0
    for bundle in sorted(replica.reds(), key=lambda each: red_order(replica, each)):
        mark_green(replica, bundle, "OR-2", state, out)
    weights = replica.weights_of(component.members)  # as they are now: the next quorum counts them
    replica.prim = msgspec.structs.replace(replica.prim, servers=component.members, weights=weights)
    write_knowledge(replica, out)
    prim = replica.prim
    out.append(
        Trace(
            "install",
            members=prim.servers,
            position=prim.prim_index,
            sub=prim.attempt_index,
            digest=replica.digest.hex(),
        )
    )
    out.extend(voters(prim))


def voters(prim: Prim) -> list[Trace]:
    """Who counts how much when the next component is formed."""
    first = distinguished(prim)
    return [
        Trace(
            "voter",
            "distinguished" if server == first else None,
            members=(server,),
            position=prim.prim_index,
            sub=weight,
        )
        for server, weight in zip(prim.servers, prim.weights, strict=True)
    ]


def release(replica: Replica, why: str, out: list[Effect]) -> None:
    """We know how the attempt ended."""
    replica.vulnerable = msgspec.structs.replace(replica.vulnerable, is_valid=False)
    out.append(vulnerability(replica, f"invalid {why}"))
    write_knowledge(replica, out)
