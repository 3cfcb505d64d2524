"""Engines with one mistake each: most are the printed pseudo-code read to the letter (the gaps of the notes).

Their invariants are switched off, so that what catches them is the specification, or that they come to no end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from greenline.kernel.database import Applied
from greenline.kernel.effects import Effect, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import RegularConf, Service
from greenline.replication import (
    answers,
    applying,
    construct,
    core,
    discarding,
    exchange_actions,
    exchange_states,
    invariants,
    knowledge,
    plan,
    recovery,
    replica,
    requests,
    transprim,
    un,
)
from greenline.replication.core import Engine
from greenline.replication.exchange import Exchange
from greenline.replication.exchange_states import ExchangeStates
from greenline.replication.knowledge import IsGreen, Learned
from greenline.replication.messages import Bundle, Line, Prim, State, Vulnerable, Yellow
from greenline.replication.moves import ToConstruct, ToExchangeStates
from greenline.replication.nonprim import NonPrim
from greenline.replication.outbox import Outbox
from greenline.replication.plan import Plan
from greenline.replication.port import BundleId
from greenline.replication.regprim import RegPrim
from greenline.replication.replica import Replica
from greenline.replication.requests import Generates, Requests
from greenline.replication.server import Component, Place, Server
from greenline.replication.told import Told
from greenline.replication.transprim import TransPrim
from greenline.replication.un import Un
from greenline.simulation.mutants import membership, semantics, sessions
from greenline.simulation.mutants.mutant import Seeded

_mutant = Seeded(invariants)


# Vulnerability (figure 6.12, steps 3 and 4).

_mutant(
    "no-bit-is-set",
    "unites the bits of the vulnerable, but never sets one (GAP 1)",
    (knowledge, "accounted", lambda _, states: set().union(*(s.vulnerable.bits for s in states.values()))),
)

_right_superseded = knowledge.is_superseded


class _Printed:
    """The printed first disjunct of step 3: who is not in the last primary component is released."""

    def __call__(self, mine: Vulnerable, prim: Prim) -> bool:
        return _right_superseded(mine, prim) or not set(mine.set) <= set(prim.servers)


_mutant(
    "outsiders-are-released",
    "releases a vulnerable server that was not in the last primary component it knows (GAP 2)",
    (knowledge, "is_superseded", _Printed()),
    scenario="REPL-16",
)
_mutant(
    "the-absent-are-witnesses",
    "takes a member of the attempt that is not here for one that is not vulnerable",
    (
        knowledge,
        "has_witness",
        lambda server, mine, states: any(
            other not in states or states[other].vulnerable.key != mine.key or not states[other].vulnerable.is_valid
            for other in mine.set
            if other != server
        ),
    ),
    scenario="REPL-11",
)


def _one_after_the_other(states: Mapping[ProcId, State], is_green: IsGreen) -> Learned:
    """Later servers are judged by what became of earlier ones in the same computation."""
    changed = dict(states)
    first = _right_compute(states, is_green)
    for server in sorted(states):
        fate = _right_compute(changed, is_green).vulnerable[server]
        changed[server] = msgspec.structs.replace(changed[server], vulnerable=fate)
    return dataclasses.replace(first, vulnerable={server: state.vulnerable for server, state in changed.items()})


_right_compute = knowledge.compute_knowledge

_mutant(
    "judged-one-after-the-other",
    "releases a server since another was released a moment before, in the same exchange (GAP 2)",
    (exchange_actions, "compute_knowledge", _one_after_the_other),
    (knowledge, "is_superseded", _Printed()),
    scenario="REPL-17",
)
_mutant(
    "vulnerable-may-vote",
    "forms a primary component though somebody in it is vulnerable",
    (Learned, "is_anybody_vulnerable", False),
    scenario="REPL-11",
)


def _released_in_un(self: Un, told: Told, out: list[Effect]) -> Any:
    if isinstance(told, RegularConf):
        construct.release(self.server.replica, "no", out)
        return ToExchangeStates(Place.of(told.conf))
    return _right_un(self, told, out)


_right_un = Un.handle

_mutant(
    "un-is-no",
    "is not vulnerable any more when all CPCs came and then a new configuration (GAP 16)",
    (Un, "handle", _released_in_un),
    scenario="REPL-11",
)


def _forgets_vulnerability(*args: Any) -> Replica:
    found = _right_recover(*args)
    found.vulnerable = Vulnerable()
    return found


_right_recover = recovery.recover

_mutant(
    "forgets-what-it-agreed-to",
    "starts a life without the vulnerability of the last",
    (core, "recover", _forgets_vulnerability),
    scenario="REPL-14",
)


def _forgets_attempts(*args: Any) -> Replica:
    found = _right_recover(*args)
    found.attempt_index = 0
    return found


_mutant(
    "attempts-are-counted-anew",
    "starts a life with attempt 0, so that one number is used for two attempts (GAP 15)",
    (core, "recover", _forgets_attempts),
)

# Quorum and installation.


def _half_is_enough(members: Collection[ProcId], prim: Prim) -> bool:
    weights = dict(zip(prim.servers, prim.weights, strict=True))
    return 2 * sum(weight for server, weight in weights.items() if server in members) >= sum(weights.values())


_mutant(
    "half-is-enough",
    "takes half of the last primary component for a quorum, whichever half",
    (exchange_actions, "has_quorum", _half_is_enough),
    scenario="REPL-38",
)
_mutant(
    "majority-of-those-it-met-first",
    "counts a quorum against the servers that exist, and not against the last primary component",
    (
        exchange_actions,
        "is_quorum",
        lambda mine, learned, component: (
            not learned.is_anybody_vulnerable and 2 * len(component.members) > len(mine.roster.servers)
        ),
    ),
    scenario="REPL-39",
)
_right_count = construct.count

_mutant(
    "most-cpcs-are-enough",
    "installs a component when more than half of its members have agreed",
    (
        construct,
        "count",
        lambda phase, cpc: _right_count(phase, cpc) or 2 * len(phase.cpcs) > len(phase.component.members),
    ),
)


def _reds_first(mine: Replica, component: Component, state: str, out: list[Effect]) -> None:
    kept, mine.yellow = mine.yellow, Yellow()
    _right_install(mine, component, state, out)
    mine.yellow = Yellow(False, kept.ids[:0])


_right_install = construct.install

_mutant(
    "yellow-is-red",
    "orders yellow bundles among the reds when a component is installed",
    (construct, "install", _reds_first),
    (un, "install", _reds_first),
    scenario="REPL-05",
)
_mutant(
    "reds-by-server",
    "orders reds by server and index, whatever their creators had seen (GAP 11)",
    (construct, "red_order", lambda _, bundle: (0, bundle)),
    scenario="REPL-04",
)


def _knowledge_first(mine: Replica, out: list[Effect]) -> None:
    replica.append(mine, replica.knowledge_of(mine), out)
    replica.write_greens(mine, out)


_mutant(
    "knowledge-before-its-greens",
    "writes that a component is installed before the order that it gave",
    (construct, "write_knowledge", _knowledge_first),
    scenario="REPL-69",
)

# Colours.


def _all_have_it(lists: list[Yellow], is_green: IsGreen) -> Yellow:
    if not lists:
        return Yellow()
    ids = dict.fromkeys(each for one in lists for each in one.ids if not is_green(each))
    return Yellow(True, tuple(ids))


_mutant(
    "yellow-union",
    "takes for yellow what anybody has yellow, not what all have (GAP 12)",
    (knowledge, "_common_yellow", _all_have_it),
    scenario="REPL-07",
)


def _everybodys_yellow(states: Mapping[ProcId, State], is_green: IsGreen) -> Learned:
    learned = _right_compute(states, is_green)
    lists = [state.yellow for _, state in sorted(states.items()) if state.yellow.is_valid]
    return dataclasses.replace(learned, yellow=knowledge._common_yellow(lists, is_green))


_mutant(
    "yellow-of-an-older-component",
    "lets servers that do not know the last primary component say what is yellow in it (GAP 13)",
    (exchange_actions, "compute_knowledge", _everybodys_yellow),
    scenario="REPL-77",
)


def _green_in_transition(self: TransPrim, told: Told, out: list[Effect]) -> Any:
    if isinstance(told, Bundle):
        replica.mark_red(self.server.replica, told, "RegPrim", out)
        replica.mark_green(self.server.replica, told.id, "OR-1.1", "RegPrim", out)
        return None
    return _right_trans(self, told, out)


_right_trans = TransPrim.handle

_mutant(
    "green-in-transition",
    "marks green what is delivered in the transitional configuration of a primary component",
    (TransPrim, "handle", _green_in_transition),
)


def _yellow_at_once(mine: Replica, bundle: Bundle, state: str, out: list[Effect]) -> None:
    _right_yellow(mine, bundle, state, out)
    mine.yellow = Yellow(True, mine.yellow.ids)
    mine.vulnerable = msgspec.structs.replace(mine.vulnerable, is_valid=False)
    replica.write_knowledge(mine, out)


_right_yellow = replica.mark_yellow

_mutant(
    "yellow-is-complete-at-once",
    "calls its yellow list complete, and itself not vulnerable, before the new configuration is there (GAP 14)",
    (transprim, "mark_yellow", _yellow_at_once),
    (un, "mark_yellow", _yellow_at_once),
    scenario="REPL-08",
)

# The exchange.


def _drops(_: Exchange, mine: Replica, bundle: Bundle, state: str, out: list[Effect]) -> None:
    replica.mark_red(mine, bundle, state, out)


_mutant(
    "drops-what-is-in-flight",
    "drops a bundle that was on its way when the configuration changed, if it lacks an earlier one (GAP 5)",
    (Exchange, "hold_or_mark", _drops),
)


def _any_state(self: ExchangeStates, told: Told, out: list[Effect]) -> Any:
    if isinstance(told, State):
        told = msgspec.structs.replace(told, meeting=self.place.meeting)
    return _right_states(self, told, out)


_right_states = ExchangeStates.handle

_mutant(
    "states-of-any-meeting",
    "takes a State message of an earlier configuration for one of this (GAP 6)",
    (ExchangeStates, "handle", _any_state),
)


_right_plan = plan.draw_plan


def _only_from_the_source(right: Plan) -> Plan:
    return dataclasses.replace(right, reds=tuple(share for share in right.reds if share.holder == right.source))


_mutant(
    "red-bodies-only-from-the-source",
    "retransmits only what the most updated server has, and reds of others stay where they are",
    (
        exchange_states,
        "draw_plan",
        lambda states: _only_from_the_source(_right_plan(states)),
    ),
)
_mutant(
    "cpc-is-impossible-in-nonprim",
    "stops when a CPC comes in NonPrim, as the paper calls it impossible (GAP 4)",
    (NonPrim, "handle", lambda self, told, out: _no_cpc(self, told, out)),
)
_right_nonprim = NonPrim.handle


def _no_cpc(self: NonPrim, told: Told, out: list[Effect]) -> Any:
    if type(told).__name__ == "CPC" and told.meeting == (self.place.meeting if self.place else None):  # type: ignore[union-attr]
        raise AssertionError("a CPC in NonPrim")
    return _right_nonprim(self, told, out)


def _far_all_the_same(self: NonPrim) -> Generates:
    return Generates.NOT_NOW if self.is_transitional else Generates.AGREED


_mutant(
    "the-far-speak-up",
    "multicasts bundles though it is far behind and was left out of the exchange",
    (NonPrim, "generates", property(_far_all_the_same)),
    scenario="REPL-71",
)


def _near_is_nothing(self: RegPrim, told: Told, out: list[Effect]) -> Any:
    if type(told).__name__ == "Near":
        return None
    return _right_regprim(self, told, out)


_right_regprim = RegPrim.handle

_mutant(
    "near-is-not-heard",
    "does not end a primary component when somebody comes near",
    (RegPrim, "handle", _near_is_nothing),
)

# The disk.


def _sent_before_its_body(
    mine: Replica, waiting: Requests, outbox: Outbox, generates: Generates, out: list[Effect]
) -> None:
    _right_make(mine, waiting, outbox, generates, out)
    if outbox.waiting and isinstance(outbox.waiting[-1].message, Bundle):
        outbox.waiting[-1] = dataclasses.replace(outbox.waiting[-1], gate=0)


_right_make = requests._make_bundle

_mutant(
    "sent-before-its-body",
    "sends a bundle before its body is on disk, so a crash uses its index again (GAP 22)",
    (requests, "_make_bundle", _sent_before_its_body),
    scenario="REPL-76",
)


def _ungated(server: Server, found: Any) -> Any:
    """What was said last waits for no disk."""
    server.outbox.waiting[-1] = dataclasses.replace(server.outbox.waiting[-1], gate=0)
    return found


def _agrees_at_once(server: Server, move: ToConstruct, out: list[Effect]) -> Any:
    return _ungated(server, _right_construct(server, move, out))


_right_construct = construct.enter

_mutant(
    "agrees-before-it-is-written",
    "sends its CPC before its vulnerability is on disk",
    (construct, "enter", _agrees_at_once),
    scenario="REPL-76",
)


def _tells_at_once(server: Server, move: ToExchangeStates, out: list[Effect]) -> Any:
    return _ungated(server, _right_shift(server, move, out))


_right_shift = exchange_states.enter

_mutant(
    "tells-before-it-is-written",
    "sends its State before what it says is on disk",
    (exchange_states, "enter", _tells_at_once),
    scenario="REPL-76",
)


def _answers_at_once(mine: Replica, waiting: Requests, bundle: BundleId, applied: Applied, out: list[Effect]) -> None:
    before = len(out)
    _right_reply(mine, waiting, bundle, applied, out)
    out[before:] = [Upcall(each.payload) if isinstance(each, Upcall) else each for each in out[before:]]


_right_reply = requests.reply

_mutant(
    "answers-before-it-is-written",
    "answers at level local before the green mark is on disk (GAP 3)",
    (answers, "reply", _answers_at_once),
    scenario="REPL-35",
)


def _commits_at_once(mine: Replica, work: applying.Applying, out: list[Effect]) -> None:
    line = mine.green_lines.get(mine.me, 0)
    mine.green_lines[mine.me] = mine.green
    _right_apply(mine, work, out)
    mine.green_lines[mine.me] = line


_right_apply = applying.apply_greens

_mutant(
    "data-before-log",
    "commits a bundle to the database before its green mark is on disk",
    (core, "apply_greens", _commits_at_once),
)


def _announces_what_is_in_memory(_: Engine, phase: core.Phase, __: list[Effect]) -> None:
    mine = phase.server.replica
    if mine.green > mine.announced and phase.generates is not Generates.NOT_NOW:
        mine.announced = mine.green
        phase.server.outbox.say(Line(mine.me, mine.green), Service.AGREED)


_mutant(
    "announces-what-is-in-memory",
    "tells others a green line that a crash can take back (GAP 23)",
    (Engine, "_announce", _announces_what_is_in_memory),
    scenario="REPL-36",
)
_mutant(
    "white-for-most",
    "calls white what most servers have on disk, and discards it",
    (
        discarding,
        "white_line",
        lambda mine: sorted(discarding.line_of(mine, seat) for seat in mine.roster.seats)[len(mine.roster.seats) // 2],
    ),
)


def _own_body_later(mine: Replica, bundle: Bundle, out: list[Effect]) -> None:
    if bundle.creator != mine.me:
        _right_keep(mine, bundle, out)


_right_keep = replica.keep_body

_mutant(
    "own-bodies-are-not-kept",
    "does not write its own bundles down, as others have them (GAP 20)",
    (requests, "keep_body", _own_body_later),
)
_mutant(
    "quorum-is-local",
    "answers at level quorum when its own disk has it",
    (requests, "_is_at_quorum", lambda mine, position: mine.durable_green >= position),
    scenario="REPL-70",
)

MUTANTS = {**_mutant.mutants, **membership.MUTANTS, **semantics.MUTANTS, **sessions.MUTANTS}
