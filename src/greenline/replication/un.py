"""Un: the configuration changes, and all CPCs are here: others may have installed, or not (A.12)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.ports import RegularConf
from greenline.replication.construct import install
from greenline.replication.messages import Bundle
from greenline.replication.moves import ToExchangeStates, ToTransPrim, ToUn
from greenline.replication.replica import mark_yellow, vulnerability
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class Un:
    server: Server
    component: Component

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.component.place

    def handle(self, told: Told, out: list[Effect]) -> ToTransPrim | ToExchangeStates | None:
        replica = self.server.replica
        match told:
            case Bundle() as bundle:
                # Only who has installed the component sends a bundle after the CPCs.
                install(replica, self.component, "Un", out)
                mark_yellow(replica, bundle, "Un", out)
                return ToTransPrim(self.component)
            case _ if isinstance(told, Meant):
                # Who delivers these in the regular configuration has installed, and met again since.
                out.append(Ignored("the configuration is over"))
            case RegularConf(conf):
                out.append(vulnerability(replica, "valid un"))
                return ToExchangeStates(Place.of(conf))
            case _:
                raise Impossible(self, told)

        return None


def enter(server: Server, move: ToUn) -> tuple[Un, None]:
    return Un(server, move.component), None
