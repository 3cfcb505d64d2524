"""RegPrim: in a primary component. What is delivered here is green, in the order of its delivery (A.2, OR-1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.ports import TransitionalConf
from greenline.replication.catching_up import on_segment
from greenline.replication.construct import release
from greenline.replication.messages import CPC, Bundle, Near, Retrans, Segment, State, Yellow
from greenline.replication.moves import ToExchangeStates, ToRegPrim, ToTransPrim
from greenline.replication.replica import mark_green, mark_red
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Told


@dataclass(slots=True)
class RegPrim:
    server: Server
    component: Component

    generates = Generates.SAFE

    @property
    def place(self) -> Place:
        return self.component.place

    def handle(self, told: Told, out: list[Effect]) -> ToTransPrim | ToExchangeStates | None:
        replica = self.server.replica
        match told:
            case Bundle() as bundle:
                is_next = mark_red(replica, bundle, "RegPrim", out)
                assert is_next, f"{bundle.id} is not the next of its creator in a primary component"
                mark_green(replica, bundle.id, "OR-1.1", "RegPrim", out)
            case Segment() as segment if segment.meeting == self.place.meeting:
                on_segment(self.server, None, segment, "RegPrim", out)
            case Near(meeting) if meeting == self.place.meeting:
                # The component ends here for all its members: what came before is green, what comes after is not.
                replica.yellow = Yellow(True)
                release(replica, "trans", out)
                return ToExchangeStates(self.place.next_meeting())
            case State() | CPC() | Retrans() | Near() | Segment() if told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case TransitionalConf():
                return ToTransPrim(self.component)
            case _:
                raise Impossible(self, told)
        return None


def enter(server: Server, move: ToRegPrim) -> tuple[RegPrim, None]:
    return RegPrim(server, move.component), None
