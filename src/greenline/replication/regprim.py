"""RegPrim: in a primary component. What is delivered here is green, in the order of its delivery (A.2, OR-1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.ports import Service, TransitionalConf
from greenline.replication.catching_up import on_segment
from greenline.replication.construct import release
from greenline.replication.messages import Barrier, Bundle, Declined, Manifest, Near, Piece, Segment, Yellow
from greenline.replication.moves import ToExchangeStates, ToRegPrim, ToTransPrim
from greenline.replication.queries import on_barrier
from greenline.replication.replica import Replica, mark_green, mark_red
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Meant, Told


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
                if bundle.change is not None:
                    self.meet_again_if_over()
            case Barrier() as barrier if barrier.meeting == self.place.meeting:
                on_barrier(replica, self.server.queries, barrier, out)
            case Segment() as segment if segment.meeting == self.place.meeting:
                on_segment(self.server, None, segment, "RegPrim", out)
            case Near(meeting) if meeting == self.place.meeting:
                # The component ends here for all its members: what came before is green, what comes after is not.
                replica.yellow = Yellow(True)
                release(replica, "trans", out)
                return ToExchangeStates(self.place.next_meeting())
            case Manifest() | Declined() | Piece() if told.meeting == self.place.meeting:
                pass  # for somebody who is not in the component
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case TransitionalConf():
                return ToTransPrim(self.component)
            case _:
                raise Impossible(self, told)
        return None

    def meet_again_if_over(self) -> None:
        """Weights change with a new component only; and who has left is to be in none (GAP 24, 25 and 33).

        The first of us says so, to all in the configuration: if it cannot, the configuration changes anyway.
        """
        replica = self.server.replica
        if is_over(replica, self.component) and replica.me == self.component.members[0]:
            self.server.outbox.say(Near(self.place.meeting, replica.me), Service.AGREED)


def enter(server: Server, move: ToRegPrim) -> tuple[RegPrim, None]:
    phase = RegPrim(server, move.component)
    phase.meet_again_if_over()
    return phase, None


def is_over(replica: Replica, component: Component) -> bool:
    """Does somebody weigh otherwise than when it was installed, or can somebody go who has left and counts nothing?"""
    weights = replica.weights_of(component.members)
    gone = [name for name in component.members if replica.roster.is_gone(name)]
    return weights != replica.prim.weights or any(not replica.prim.weight_of(name) for name in gone)
