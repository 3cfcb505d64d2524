"""No: the configuration changes, and a CPC is missing: nobody can have installed, unless the rest comes yet (A.11)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import RegularConf
from greenline.replication.construct import count, release
from greenline.replication.messages import CPC
from greenline.replication.moves import ToExchangeStates, ToNo, ToUn
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class No:
    server: Server
    component: Component
    queue: bytes
    cpcs: dict[ProcId, CPC]

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.component.place

    def handle(self, told: Told, out: list[Effect]) -> ToUn | ToExchangeStates | None:
        match told:
            case CPC() as cpc if cpc.meeting == self.place.meeting:
                if count(self, cpc):
                    return ToUn(self.component)
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case RegularConf(conf):
                release(self.server.replica, "no", out)
                return ToExchangeStates(Place.of(conf))
            case _:
                raise Impossible(self, told)
        return None


def enter(server: Server, move: ToNo) -> tuple[No, None]:
    return No(server, move.component, move.queue, move.cpcs), None
