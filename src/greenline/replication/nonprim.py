"""NonPrim: not in a primary component. Bundles are accepted, and red (A.1).

These ways lead here: an exchange that found no quorum, one that a change of configuration interrupted (then a new
configuration is near, `is_transitional`), one that left us out as we are far behind or new (`catching_up`, `joining`),
and one after which the others go on without us, as we have left (`Farewell`).
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import RegularConf, TransitionalConf
from greenline.replication import forcing, joining
from greenline.replication.catching_up import CatchingUp, catch_up, on_segment
from greenline.replication.joining import Transfer
from greenline.replication.messages import (
    CPC,
    Bundle,
    Declined,
    Manifest,
    Meeting,
    Near,
    Override,
    Piece,
    Retrans,
    Segment,
)
from greenline.replication.moves import ToExchangeStates, ToNonPrim
from greenline.replication.port import Force
from greenline.replication.replica import mark_red, take_greens
from greenline.replication.requests import Generates, tell_left
from greenline.replication.server import Met, Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class Farewell:
    """We have left, and the others make a component without us."""

    waiting: set[ProcId]
    """Who has not written down yet that it needs us no more: its CPC says so."""


@dataclass(slots=True)
class NonPrim:
    server: Server
    place: Place | None
    is_transitional: bool
    met: Met | None = None
    """Who took part in the exchange that found no quorum."""
    way: CatchingUp | Transfer | Farewell | None = None
    """Why we take no part, and what we do about it."""

    @property
    def generates(self) -> Generates:
        if self.is_transitional or self.server.replica.is_new:
            return Generates.NOT_NOW
        return Generates.AGREED if self.way is None else Generates.ALONE

    def handle(self, told: Told, out: list[Effect]) -> ToExchangeStates | None:
        match told:
            case Bundle() as bundle:
                mark_red(self.server.replica, bundle, "NonPrim", out)
            case Retrans() as retrans if self.is_here(retrans.meeting):
                absorb(self.server, retrans, "NonPrim", out)
            case CPC() as cpc if self.is_here(cpc.meeting) and isinstance(self.way, Farewell):
                self.on_cpc(self.way, cpc, out)
            case Segment() as segment if self.is_here(segment.meeting) and not self.is_transitional:
                self.on_segment(segment, out)
            case Manifest() | Declined() | Piece() if self.is_here(told.meeting):
                if isinstance(self.way, Transfer):
                    self.on_transfer(self.way, told, out)
            case Near(meeting) if self.is_here(meeting) and not self.is_transitional:
                return self.meet_again()
            case Override(meeting) as override if self.is_here(meeting) and not self.is_transitional:
                # In the regular configuration only: then everybody has heard it.
                if self.met is not None:
                    server = self.server
                    forcing.overrule(server.replica, server.forcing, server.requests, override, out)
                return self.meet_again()
            case Override(meeting) as override if self.is_here(meeting) and self.met is not None:
                forcing.beware(self.server.replica, override, out)
            case TransitionalConf():
                self.is_transitional = True
            case RegularConf(conf):
                return ToExchangeStates(Place.of(conf))
            case _ if isinstance(told, Meant):
                out.append(Ignored("its meeting is over here"))  # GAP 4: a CPC can come here, and means nothing
            case _:
                raise Impossible(self, told)
        return None

    def is_here(self, meeting: Meeting) -> bool:
        return self.place is not None and self.place.meeting == meeting

    def meet_again(self) -> ToExchangeStates:
        assert self.place is not None
        return ToExchangeStates(self.place.next_meeting())

    def on_segment(self, segment: Segment, out: list[Effect]) -> None:
        way = self.way
        on_segment(self.server, way if isinstance(way, CatchingUp) else None, segment, "NonPrim", out)
        if isinstance(way, CatchingUp) and way.is_left_behind and self.server.replica.removed_at is None:
            self.way = joining.begin(self.server.replica, self.server.outbox, way.exchange)

    def on_transfer(self, transfer: Transfer, told: Manifest | Declined | Piece, out: list[Effect]) -> None:
        replica, applying = self.server.replica, self.server.applying
        match told:
            case Manifest():
                joining.on_manifest(replica, transfer, applying, told, out)
            case Declined():
                joining.on_declined(replica, transfer, told, out)
            case Piece():
                joining.on_piece(replica, transfer, applying, told, out)

    def on_restored(self, out: list[Effect]) -> None:
        """The database is a snapshot by now: take it over, and come near to the others."""
        server = self.server
        joining.take_over(server.replica, server.requests, server.applying, out)
        if isinstance(self.way, Transfer) and not self.is_transitional:
            self.way = catch_up(server, self.way.exchange, out)

    def on_cpc(self, farewell: Farewell, cpc: CPC, out: list[Effect]) -> None:
        farewell.waiting.discard(cpc.server)
        if not farewell.waiting:
            tell_left(self.server.replica, out)

    def on_force(self, call: Force, out: list[Effect]) -> None:
        server = self.server
        why = forcing.why_not(None if self.is_transitional else self.met, self.place, call)
        if why is None and server.forcing.asked is not None:
            why = "it was asked for a moment ago, and is not decided yet"
        if why is not None:
            forcing.refuse(call, why, out)
        else:
            assert self.place is not None
            forcing.ask_all(server.replica, server.forcing, server.outbox, self.place, call)


def enter(server: Server, move: ToNonPrim, out: list[Effect]) -> tuple[NonPrim, None]:
    way: CatchingUp | Transfer | Farewell | None = None
    if move.far_from is not None:
        way = catch_up(server, move.far_from, out)
    elif move.others:
        way = Farewell(set(move.others))
    return NonPrim(server, move.place, move.is_transitional, move.met, way), None


def absorb(server: Server, retrans: Retrans, state: str, out: list[Effect]) -> None:
    """Take what a retransmission has for us: facts about another's past, whatever becomes of the exchange (GAP 9)."""
    if retrans.greens is not None:
        take_greens(server.replica, retrans.server, retrans.greens, state, out)
    for bundle in retrans.reds:
        mark_red(server.replica, bundle, state, out)
