"""ExchangeActions: every bundle that somebody lacks travels once; then it is clear what can be known (A.5, A.6)."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.identities import ProcId, in_order
from greenline.kernel.ports import TransitionalConf
from greenline.replication.exchange import Exchange, retransmit_greens, retransmit_reds
from greenline.replication.knowledge import Learned, compute_knowledge, has_quorum
from greenline.replication.messages import Retrans, Vulnerable
from greenline.replication.moves import ToConstruct, ToExchangeActions, ToNonPrim
from greenline.replication.nonprim import absorb
from greenline.replication.plan import Plan
from greenline.replication.replica import Replica, raise_line, vulnerability, write_knowledge
from greenline.replication.requests import Generates
from greenline.replication.server import Component, Met, Place, Server
from greenline.replication.told import Meant, Told


@dataclass(slots=True)
class ExchangeActions:
    server: Server
    exchange: Exchange
    phase: int
    waiting: set[ProcId]
    """Who has not said the last of its share in this phase."""

    generates = Generates.NOT_NOW

    @property
    def place(self) -> Place:
        return self.exchange.place

    @property
    def plan(self) -> Plan:
        assert self.exchange.plan is not None
        return self.exchange.plan

    def handle(self, told: Told, out: list[Effect]) -> ToNonPrim | ToConstruct | None:
        match told:
            case Retrans() as retrans if retrans.meeting == self.place.meeting:
                absorb(self.server, retrans, "ExchangeActions", out)
                if retrans.is_last:
                    self.waiting.discard(retrans.server)
                return self.go_on(out)
            case _ if isinstance(told, Meant) and told.meeting != self.place.meeting:
                out.append(Ignored("of another meeting"))
            case TransitionalConf():
                return ToNonPrim(self.place, is_transitional=True)
            case _:
                raise Impossible(self, told)
        return None

    def go_on(self, out: list[Effect]) -> ToNonPrim | ToConstruct | None:
        """Everybody comes to the next phase, and to the end, at the same message."""
        while not self.waiting:
            if self.phase == 2:
                return end_of_retrans(self.server, self.exchange, self.plan, out)
            self.begin(2)
        return None

    def begin(self, phase: int) -> None:
        self.phase = phase
        self.waiting = self.plan.senders(phase)
        if self.server.replica.me in self.waiting:
            retransmit = retransmit_greens if phase == 1 else retransmit_reds
            retransmit(self.server.replica, self.server.outbox, self.exchange)


def enter(
    server: Server, move: ToExchangeActions, out: list[Effect]
) -> tuple[ExchangeActions, ToNonPrim | ToConstruct | None]:
    phase = ExchangeActions(server, move.exchange, 1, set())
    phase.begin(1)
    return phase, phase.go_on(out)


def end_of_retrans(server: Server, exchange: Exchange, plan: Plan, out: list[Effect]) -> ToNonPrim | ToConstruct:
    """All who take part have the same bundles by now: learn what they know together, and try for a component."""
    replica = server.replica
    exchange.mark_held(replica, "ExchangeActions", out)
    lost = [each.id for each in exchange.held if each.creator in plan.members]
    assert not lost, f"held {lost} when all was retransmitted"
    states = {name: exchange.states[name] for name in plan.members}
    for name, state in sorted(exchange.states.items()):
        for other, line in (*state.green_lines, (name, state.green)):
            if other != replica.me:
                raise_line(replica, other, line, out)
    learned = compute_knowledge(states, replica.is_green)
    adopt(replica, learned, out)
    component = Component(exchange.place, stayers(replica, plan.members))
    if not is_quorum(replica, learned, component):
        write_knowledge(replica, out)
        met = Met(plan.members, needed(replica, learned))
        return ToNonPrim(exchange.place, is_transitional=False, met=met)
    if replica.me not in component.members:
        write_knowledge(replica, out)
        return ToNonPrim(exchange.place, is_transitional=False, others=component.members)
    replica.attempt_index += 1
    attempt = replica.prim.prim_index, replica.attempt_index, component.members
    replica.vulnerable = Vulnerable(True, *attempt, epoch=replica.prim.epoch)
    out.append(vulnerability(replica, "valid try"))
    write_knowledge(replica, out)
    return ToConstruct(component)


def stayers(replica: Replica, members: tuple[ProcId, ...]) -> tuple[ProcId, ...]:
    """Without those who have left, once they count nothing in the last component: all that they know is known to all.

    Until then they agree to the next one like everybody else, so that no two components can both count on them.
    """
    return tuple(name for name in members if not replica.roster.is_gone(name) or replica.prim.weight_of(name))


def needed(replica: Replica, learned: Learned) -> tuple[ProcId, ...]:
    """Whose word is waited for, and who would be refused if a component were forced without them."""
    attempts = (set(each.set) for each in learned.vulnerable.values() if each.is_valid)
    return in_order(set(replica.roster.servers).union(replica.prim.servers, *attempts))


def adopt(replica: Replica, learned: Learned, out: list[Effect]) -> None:
    replica.prim, replica.attempt_index, replica.yellow = learned.prim, learned.attempt_index, learned.yellow
    replica.vulnerable = learned.vulnerable[replica.me]
    replica.era = learned.era
    if replica.me in learned.released_by:
        out.append(vulnerability(replica, f"invalid {learned.released_by[replica.me]}"))


def is_quorum(replica: Replica, learned: Learned, component: Component) -> bool:
    """An operator has the last word: no component of an earlier epoch, and no bound for all who were to go on."""
    is_heavy = sum(replica.weights_of(component.members)) >= replica.settings.voting.lower_bound
    return (
        not learned.is_anybody_vulnerable
        and learned.prim.epoch == learned.era.epoch
        and has_quorum(component.members, learned.prim)
        and (is_heavy or 0 < len(learned.era.survivors) == len({*learned.era.survivors} & {*component.members}))
    )
