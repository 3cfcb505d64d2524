"""TransPrim: the primary component's configuration changes. What is delivered now is yellow: it may be green elsewhere,
or nowhere (A.3)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.ports import RegularConf
from greenline.replication.construct import release
from greenline.replication.messages import Barrier, Bundle, Declined, Manifest, Near, Piece, Segment
from greenline.replication.moves import ToExchangeStates, ToTransPrim
from greenline.replication.replica import mark_yellow
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class TransPrim:
    server: Server
    component: Component

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.component.place

    def handle(self, told: Told, out: list[Effect]) -> ToExchangeStates | None:
        replica = self.server.replica
        match told:
            case Bundle() as bundle:
                mark_yellow(replica, bundle, "TransPrim", out)
            case Near() | Segment() | Barrier() | Manifest() | Declined() | Piece():
                out.append(Ignored("the configuration is over"))
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case RegularConf(conf):
                # Only now is the list complete, and only with it may the vulnerability go (GAP 14).
                replica.yellow = msgspec.structs.replace(replica.yellow, is_valid=True)
                release(replica, "trans", out)
                return ToExchangeStates(Place.of(conf))
            case _:
                raise Impossible(self, told)
        return None


def enter(server: Server, move: ToTransPrim) -> tuple[TransPrim, None]:
    return TransPrim(server, move.component), None
