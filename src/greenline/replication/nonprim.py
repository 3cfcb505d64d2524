"""NonPrim: not in a primary component. Bundles are accepted, and red (A.1).

Three ways lead here: an exchange that found no quorum, one that a change of configuration interrupted (then a new
configuration is near, `is_transitional`), and one that left us out as we are far behind (`catching_up`).
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.ports import RegularConf, TransitionalConf
from greenline.replication.catching_up import CatchingUp, catch_up, on_segment
from greenline.replication.messages import CPC, Bundle, Meeting, Near, Retrans, Segment, State
from greenline.replication.moves import ToExchangeStates, ToNonPrim
from greenline.replication.replica import mark_red, take_greens
from greenline.replication.requests import Generates
from greenline.replication.server import Place, Server
from greenline.replication.told import Told


@dataclass(slots=True)
class NonPrim:
    server: Server
    place: Place | None
    is_transitional: bool
    catching_up: CatchingUp | None = None

    @property
    def generates(self) -> Generates:
        if self.is_transitional:
            return Generates.NOT_NOW
        return Generates.AGREED if self.catching_up is None else Generates.ALONE

    def handle(self, told: Told, out: list[Effect]) -> ToExchangeStates | None:
        match told:
            case Bundle() as bundle:
                mark_red(self.server.replica, bundle, "NonPrim", out)
            case Retrans() as retrans if self.is_here(retrans.meeting):
                absorb(self.server, retrans, "NonPrim", out)
            case Segment() as segment if self.is_here(segment.meeting) and not self.is_transitional:
                on_segment(self.server, self.catching_up, segment, "NonPrim", out)
            case Near(meeting) if self.is_here(meeting) and not self.is_transitional:
                assert self.place is not None
                return ToExchangeStates(self.place.next_meeting())
            case State() | CPC() | Retrans() | Segment() | Near():
                out.append(Ignored("its meeting is over here"))  # GAP 4: a CPC can come here, and means nothing
            case TransitionalConf():
                self.is_transitional = True
            case RegularConf(conf):
                return ToExchangeStates(Place.of(conf))
            case _:
                raise Impossible(self, told)
        return None

    def is_here(self, meeting: Meeting) -> bool:
        return self.place is not None and self.place.meeting == meeting


def enter(server: Server, move: ToNonPrim, out: list[Effect]) -> tuple[NonPrim, None]:
    catching_up = None
    if move.far_from is not None:
        catching_up = catch_up(server, move.far_from, out)
    return NonPrim(server, move.place, move.is_transitional, catching_up), None


def absorb(server: Server, retrans: Retrans, state: str, out: list[Effect]) -> None:
    """Take what a retransmission has for us: facts about another's past, whatever becomes of the exchange (GAP 9)."""
    if retrans.greens is not None:
        take_greens(server.replica, retrans.server, retrans.greens, state, out)
    for bundle in retrans.reds:
        mark_red(server.replica, bundle, state, out)
