"""ExchangeStates: everybody says what it knows, until all have (A.4, A.5)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Halt, Ignored, Trace
from greenline.kernel.ports import Service, TransitionalConf
from greenline.replication.admission import must_stop, refused
from greenline.replication.exchange import Exchange
from greenline.replication.forcing import give_up
from greenline.replication.giving import let_go
from greenline.replication.messages import Bundle, State
from greenline.replication.moves import ToExchangeActions, ToExchangeStates, ToNonPrim
from greenline.replication.plan import draw_plan
from greenline.replication.replica import Replica, cut_of, force, promises_of
from greenline.replication.requests import Generates, mark_alone
from greenline.replication.server import Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class ExchangeStates:
    server: Server
    exchange: Exchange
    is_refused: bool = False
    """Somebody is here who must not be: we wait until it has left."""

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.exchange.place

    def handle(self, told: Told, out: list[Effect]) -> ToNonPrim | ToExchangeActions | None:
        match told:
            case Bundle() as bundle:
                self.exchange.hold_or_mark(self.server.replica, bundle, "ExchangeStates", out)
            case State() as state if state.meeting == self.place.meeting:
                return self.on_state(state, out)
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case TransitionalConf():
                return ToNonPrim(self.place, is_transitional=True)
            case _:
                raise Impossible(self, told)
        return None

    def on_state(self, state: State, out: list[Effect]) -> ToExchangeActions | ToNonPrim | None:
        self.exchange.states[state.server] = state
        if len(self.exchange.states) < len(self.place.conf.members) or self.is_refused:
            return None
        if self.refuses(out):
            self.is_refused = True
            return None
        replica, states = self.server.replica, self.exchange.states
        self.exchange.plan = plan = draw_plan(states)
        if plan.far:
            out.append(Trace("far", members=plan.far))
        else:
            let_go(self.server.giving, self.server.applying, out)
        if replica.me in plan.far:
            return ToNonPrim(self.place, is_transitional=False, far_from=self.exchange)
        return ToExchangeActions(self.exchange)

    def refuses(self, out: list[Effect]) -> bool:
        """Is somebody here with whom no meeting can be held? If it is we, we stop; else we wait until it has left."""
        replica, states = self.server.replica, self.exchange.states
        found = refused(states)
        if replica.me in found and must_stop(replica.me, states):
            out.append(Halt(found[replica.me]))
        out.extend(Ignored(f"cannot meet {name}: {why}") for name, why in sorted(found.items()))
        return bool(found)


def enter(server: Server, move: ToExchangeStates, out: list[Effect]) -> tuple[ExchangeStates, None]:
    """Shift_to_exchange_states: all that our State says is durable before it leaves."""
    server.outbox.forget_control()
    give_up(server.forcing, out)
    server.fetches.clear()
    server.giving.forget()
    mark_alone(server.replica, server.requests, out)
    state = state_of(server.replica, move.place)
    gate = force(server.replica, out)
    server.outbox.say(state, Service.AGREED, gate)
    return ExchangeStates(server, Exchange(move.place)), None


def state_of(replica: Replica, place: Place) -> State:
    lines = {**replica.green_lines, replica.me: replica.green}  # the barrier that it waits for covers it
    return State(
        meeting=place.meeting,
        server=replica.me,
        cluster=replica.settings.cluster,
        green=replica.green,
        digest=replica.digest,
        low=replica.low,
        far=replica.settings.far,
        red_cut=cut_of(replica.red_cut),
        green_cut=cut_of(replica.green_cut),
        green_lines=cut_of(lines),
        promised=promises_of(replica),
        attempt_index=replica.attempt_index,
        prim=replica.prim,
        vulnerable=replica.vulnerable,
        yellow=replica.yellow,
        era=replica.era,
        roster=replica.roster,
        birth=replica.birth,
        is_new=replica.is_new,
    )
