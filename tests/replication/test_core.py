"""The pure parts of the engine: knowledge, plan, recovery, outbox, requests, admission."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenline.kernel.actions import Action, Outcome, OutcomeOf, Verdict, pack
from greenline.kernel.core import Impossible
from greenline.kernel.database import Applied, Apply, Commit, Committed, Open, Opened
from greenline.kernel.effects import Append, Barrier, Call, Effect, Halt, Ignored, Trace
from greenline.kernel.events import Answered, Downcall, Durable, Event, Start, Upcall
from greenline.kernel.identities import ConfId, Configuration, MessageId, ProcId
from greenline.kernel.ports import (
    Busy,
    Deliver,
    Multicast,
    Ready,
    RegularConf,
    Sent,
    Service,
    TooLarge,
    TransitionalConf,
)
from greenline.kernel.recovery import recover as read_log
from greenline.replication import invariants
from greenline.replication.admission import refused
from greenline.replication.construct import install
from greenline.replication.core import Boot, Engine
from greenline.replication.exchange import Exchange, retransmit_greens, retransmit_reds
from greenline.replication.exchange_actions import is_quorum
from greenline.replication.exchange_states import state_of
from greenline.replication.knowledge import compute_knowledge, distinguished, has_quorum
from greenline.replication.messages import (
    CPC,
    Base,
    Bundle,
    Line,
    Meeting,
    Ordered,
    Prim,
    Retrans,
    State,
    Vulnerable,
    Yellow,
    decode,
    encode,
)
from greenline.replication.nonprim import absorb
from greenline.replication.outbox import Outbox
from greenline.replication.plan import draw_plan
from greenline.replication.port import (
    Accepted,
    Announce,
    Ask,
    BundleId,
    Change,
    Leave,
    Level,
    Procedure,
    Reconfigure,
    Refused,
    Replied,
    Submit,
    Weigh,
    Where,
)
from greenline.replication.recovery import LogRefused, checkpoint_of, recover
from greenline.replication.replica import NO_ORDER, Replica, chained
from greenline.replication.requests import Requests
from greenline.replication.roster import founders
from greenline.replication.server import Component, Place, Server
from greenline.replication.settings import Settings, Voting
from greenline.simulation.load import replica_of
from greenline.simulation.plan import draw_plan as draw_storm
from greenline.simulation.play import prepare
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY
from greenline.simulation.world import World

P3 = ("p", "q", "r")
SETTINGS = Settings(servers=P3)
BASE = Base(SETTINGS.cluster, "p", 0, NO_ORDER, (), (), 0, founders(SETTINGS), b"", False)
HERE_IS = Where("p", False, 0, P3)
HERE = Meeting(ConfId(9, "p"))
PLACE = Place(Configuration(HERE.conf_id, P3), HERE)


def state(server: ProcId, **changes: Any) -> State:
    """A State message of a server that has just been born, but for what is said."""
    born = Replica(server, SETTINGS, Prim(0, 0, P3, (1, 1, 1)))
    return msgspec.structs.replace(state_of(born, PLACE), **changes)


def states(*each: State) -> dict[ProcId, State]:
    return {state.server: state for state in each}


def subsets(names: tuple[ProcId, ...]) -> Iterator[tuple[ProcId, ...]]:
    """All but the empty one."""
    return chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))


def never_green(_: BundleId) -> bool:
    return False


# Knowledge (6.2, Compute_knowledge). What became of an attempt of p, q and r to leave component 0.

OLD, NEW = Prim(0, 0, P3, (1, 1, 1)), Prim(1, 1, P3, (1, 1, 1))
TRIED = Vulnerable(True, 0, 1, P3)
FATES: dict[str, dict[str, Any]] = {
    "installed, and left": {"prim": NEW, "vulnerable": msgspec.structs.replace(TRIED, is_valid=False)},
    "installed, and crashed": {"prim": NEW, "vulnerable": TRIED},
    "does not know": {"prim": OLD, "attempt_index": 1, "vulnerable": TRIED},
    "knows that it failed": {
        "prim": OLD,
        "attempt_index": 1,
        "vulnerable": msgspec.structs.replace(TRIED, is_valid=False),
    },
}


def ends_of_an_attempt() -> Iterator[dict[ProcId, State]]:
    """Every way in which it can have ended: nobody knows that it failed while somebody has installed (figure 6.3)."""
    for fates in product(FATES, repeat=3):
        has_installed = any(fate.startswith("installed") for fate in fates)
        if not (has_installed and "knows that it failed" in fates):
            yield {name: state(name, **FATES[fate]) for name, fate in zip(P3, fates, strict=True)}


def meet(everybody: dict[ProcId, State], here: tuple[ProcId, ...]) -> dict[ProcId, State]:
    """These hold a meeting, and go home with what they have learnt."""
    learned = compute_knowledge({name: everybody[name] for name in here}, never_green)
    return {
        name: msgspec.structs.replace(
            each, prim=learned.prim, attempt_index=learned.attempt_index, vulnerable=learned.vulnerable[name]
        )
        if name in here
        else each
        for name, each in everybody.items()
    }


def test_nobody_is_released_from_an_attempt_that_succeeded_without_learning_of_it() -> None:
    """All ways in which an attempt of three can end, and all chains of two meetings after it: the cases of claim 4."""
    chains = list(product(subsets(P3), repeat=2))
    for end in ends_of_an_attempt():
        is_installed = any(each.prim == NEW for each in end.values())
        for meetings in chains:
            now = end
            for here in meetings:
                now = meet(now, here)
                if is_installed:
                    assert all(now[name].prim == NEW or now[name].vulnerable.is_valid for name in P3), (end, meetings)


def test_when_all_of_an_attempt_meet_nobody_stays_vulnerable() -> None:
    for end in ends_of_an_attempt():
        assert not any(each.vulnerable.is_valid for each in meet(end, P3).values())


def test_r3_needs_no_meeting_of_all_at_once() -> None:
    """p meets q, then q meets r: q has heard of all. (The thesis: "this does not require direct connection".)"""
    unknown = {name: state(name, **FATES["does not know"]) for name in P3}
    after_one = meet(unknown, ("p", "q"))
    assert after_one["q"].vulnerable.bits == ("p", "q")
    assert after_one["q"].vulnerable.is_valid
    after_two = meet(after_one, ("q", "r"))
    assert [after_two[name].vulnerable.is_valid for name in P3] == [True, False, False]
    learned = compute_knowledge({name: after_one[name] for name in ("q", "r")}, never_green)
    assert learned.released_by == {"q": "R3", "r": "R3"}


@pytest.mark.parametrize(
    ("other", "by"),
    [
        ({"prim": Prim(2, 1, P3, (1, 1, 1))}, "R1"),
        ({"prim": Prim(1, 2, P3, (1, 1, 1))}, "R1"),
        ({"prim": OLD}, "R2"),
        ({"prim": NEW}, "R2"),
        ({"vulnerable": msgspec.structs.replace(TRIED, attempt_index=2)}, "R2"),
        ({"vulnerable": msgspec.structs.replace(TRIED, set=("p", "q"))}, "R2"),
        ({"vulnerable": TRIED}, None),
        ({"vulnerable": msgspec.structs.replace(TRIED, bits=("q", "r"))}, "R3"),
    ],
)
def test_by_which_rule_p_is_released_when_it_meets_q(other: dict[str, Any], by: str | None) -> None:
    """R1 a newer component, or another of the index; R2 a member who is not vulnerable to it; R3 all accounted for."""
    p, q = state("p", vulnerable=TRIED), state("q", **other)
    learned = compute_knowledge(states(p, q), never_green)
    assert learned.released_by.get("p") == by
    assert learned.vulnerable["p"].is_valid == (by is None)


def test_a_stranger_to_the_attempt_is_no_witness() -> None:
    pair = msgspec.structs.replace(TRIED, set=("p", "q"))
    learned = compute_knowledge(states(state("p", vulnerable=pair), state("r")), never_green)
    assert learned.vulnerable["p"].is_valid
    assert learned.is_anybody_vulnerable


def test_the_newest_component_and_its_attempts_are_adopted() -> None:
    newest = Prim(4, 2, P3, (1, 1, 1))
    p, q = state("p", prim=newest, attempt_index=3), state("q", prim=newest, attempt_index=5)
    r = state("r", prim=Prim(4, 1, P3, (1, 1, 1)), attempt_index=9)
    learned = compute_knowledge(states(p, q, r), never_green)
    assert (learned.prim, learned.attempt_index) == (newest, 5)


def test_yellow_is_what_all_complete_lists_of_the_newest_component_have_and_is_not_green() -> None:
    ids = tuple(BundleId("p", index) for index in range(1, 5))
    p = state("p", prim=NEW, yellow=Yellow(True, ids))
    q = state("q", prim=NEW, yellow=Yellow(True, ids[:3]))
    r = state("r", prim=OLD, yellow=Yellow(True))
    learned = compute_knowledge(states(p, q, r), lambda bundle: bundle == ids[0])
    assert learned.yellow == Yellow(True, ids[1:3])
    incomplete = state("q", prim=NEW, yellow=Yellow(False, ids[:1]))
    assert compute_knowledge(states(p, incomplete), never_green).yellow == Yellow(True, ids)
    assert compute_knowledge(states(state("p", prim=NEW), incomplete), never_green).yellow == Yellow()


# Quorums.


def test_two_sets_without_a_common_member_are_never_both_a_quorum() -> None:
    for weights in product(range(4), repeat=4):
        prim = Prim(0, 0, ("p", "q", "r", "s"), weights)
        if not any(weights):
            continue
        quorums = [here for here in subsets(prim.servers) if has_quorum(here, prim)]
        assert prim.servers in quorums
        assert all(set(one) & set(other) for one, other in combinations(quorums, 2)), weights
        for here in subsets(prim.servers):
            half = 2 * sum(dict(zip(prim.servers, weights, strict=True))[name] for name in here)
            is_tied = half == sum(weights)
            assert (here in quorums) == (half > sum(weights) or (is_tied and distinguished(prim) in here))


def test_the_distinguished_server_is_the_heaviest_and_then_the_first_by_name() -> None:
    assert distinguished(Prim(0, 0, P3, (1, 1, 1))) == "p"
    assert distinguished(Prim(0, 0, P3, (1, 3, 3))) == "q"
    assert not has_quorum(("s", "t"), Prim(0, 0, P3, (1, 1, 1)))


def test_the_lower_bound_may_only_block() -> None:
    learned = compute_knowledge(states(*(state(name) for name in P3)), never_green)
    for bound, here in product(range(4), subsets(P3)):
        bounded = Settings(servers=P3, voting=Voting(lower_bound=bound))
        replica = Replica("p", bounded, OLD)
        assert is_quorum(replica, learned, Component(PLACE, here)) == (has_quorum(here, OLD) and len(here) >= bound)


def test_nobody_tries_while_somebody_is_vulnerable() -> None:
    learned = compute_knowledge(states(state("p", vulnerable=TRIED), state("q", vulnerable=TRIED)), never_green)
    assert not is_quorum(Replica("p", SETTINGS, OLD), learned, Component(PLACE, ("p", "q")))


def test_settings_that_can_order_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no quorum"):
        Settings(servers=P3, voting=Voting(weights=(("p", 0), ("q", 0), ("r", 0))))
    with pytest.raises(ValueError, match="less than the lower bound"):
        Settings(servers=P3, voting=Voting(lower_bound=4))
    with pytest.raises(ValueError, match="two weights"):
        Settings(servers=P3, voting=Voting(weights=(("p", 1), ("p", 2))))
    with pytest.raises(ValueError, match="cannot name a process"):
        Settings(servers=("p", "q q"))
    with pytest.raises(ValueError, match="at least far"):
        Settings(servers=P3, far=10, retain_at_most=9)
    with pytest.raises(ValueError, match="servers that do not exist: s"):
        Settings(servers=P3, voting=Voting(weights=(("s", 2),)))
    with pytest.raises(ValueError, match="0 or more"):
        Voting(weights=(("p", -1),))
    with pytest.raises(ValueError, match="named once each"):
        Settings(servers=("q", "p"))
    with pytest.raises(ValueError, match="far is at least 1"):
        Settings(servers=P3, far=0)


# Installation.


def test_at_an_installation_yellow_bundles_come_first_and_then_the_reds_by_lamport_time() -> None:
    """Somebody may have ordered the yellow ones already, and before any red; of the reds, causes come first."""
    made = [Bundle("p", 1, 7, 0, ()), Bundle("q", 1, 5, 0, ()), Bundle("q", 2, 9, 0, ()), Bundle("r", 1, 5, 0, ())]
    replica = recover("p", SETTINGS, (BASE, *made))
    replica.yellow, replica.attempt_index = Yellow(True, (BundleId("p", 1),)), 3
    replica.vulnerable = Vulnerable(True, 0, 3, P3)
    out: list[Effect] = []
    install(replica, Component(PLACE, P3), "Construct", out)

    rules = [(str(each.message), each.detail) for each in out if isinstance(each, Trace) and each.kind == "mark"]
    assert rules == [
        ("p#1", "OR-1.2 Construct"),
        ("q#1", "OR-2 Construct"),
        ("r#1", "OR-2 Construct"),
        ("q#2", "OR-2 Construct"),
    ]
    assert (replica.prim, replica.attempt_index, replica.yellow) == (Prim(1, 3, P3, (1, 1, 1)), 0, Yellow())
    assert replica.vulnerable.is_valid, "until the component ends"
    written = [each.record for each in out if isinstance(each, Append)]
    assert [type(each).__name__ for each in written] == ["Ordered", "Knowledge"], "marks before what rests on them"


# The plan of an exchange.


def bundle(creator: ProcId, index: int) -> Bundle:
    return Bundle(creator, index, index, 0, (b"%s%d" % (creator.encode(), index),))


@st.composite
def histories(draw: st.DrawFn) -> dict[ProcId, tuple[Any, ...]]:
    """Logs of servers that may meet: each has a prefix of one order, and of each creator some bundles beyond it."""
    order: list[BundleId] = []
    for creator in draw(st.lists(st.sampled_from("pqrs"), max_size=12)):
        order.append(BundleId(creator, 1 + sum(each.creator == creator for each in order)))
    made = {name: sum(each.creator == name for each in order) + draw(st.integers(0, 3)) for name in "pqrs"}
    logs: dict[ProcId, tuple[Any, ...]] = {}
    for name in draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True)):
        green = order[: draw(st.integers(0, len(order)))]
        has = {
            creator: draw(st.integers(sum(each.creator == creator for each in green), made[creator]))
            for creator in "pqrs"
        }
        has[name] = made[name]
        bodies = [bundle(creator, index) for creator in "pqrs" for index in range(1, has[creator] + 1)]
        ordered = [Ordered(1, tuple(green))] if green else []
        base = msgspec.structs.replace(BASE, cluster=SETTINGS4.cluster, server=name, roster=founders(SETTINGS4))
        logs[name] = (base, *bodies, *ordered)
    return logs


SETTINGS4 = Settings(servers=("p", "q", "r", "s"), message_bytes=150)


@settings(max_examples=150, deadline=None)
@given(histories())
def test_in_an_exchange_every_bundle_that_somebody_lacks_travels_once_and_all_come_to_the_same_queue(
    logs: dict[ProcId, tuple[Any, ...]],
) -> None:
    servers = {
        name: Server(recover(name, SETTINGS4, log), Outbox(name, 1), Requests(HERE_IS)) for name, log in logs.items()
    }
    place = Place(Configuration(HERE.conf_id, tuple(sorted(servers))), HERE)
    told = {name: state_of(server.replica, place) for name, server in servers.items()}
    everything = {each for server in servers.values() for each in server.replica.bodies}
    lacked = {each for each in everything if not all(server.replica.has(each) for server in servers.values())}

    plan = draw_plan(told)
    travelled: Counter[BundleId] = Counter()
    for phase, retransmit in ((1, retransmit_greens), (2, retransmit_reds)):
        for name in sorted(plan.senders(phase)):
            server = servers[name]
            retransmit(server.replica, server.outbox, Exchange(place, dict(told), plan=plan))
            said = [item.message for item in server.outbox.waiting]
            server.outbox.waiting.clear()
            assert [each.is_last for each in said if isinstance(each, Retrans)] == [False] * (len(said) - 1) + [True]
            for message in said:
                assert isinstance(message, Retrans)
                greens = [entry.body for entry in message.greens.entries if entry.body] if message.greens else []
                travelled.update(body.id for body in (*greens, *message.reds))
                for other in servers.values():
                    out: list[Effect] = []
                    absorb(other, message, "ExchangeActions", out)
                    assert not any(isinstance(effect, Halt) for effect in out)

    assert travelled == dict.fromkeys(lacked, 1)
    replicas = [server.replica for server in servers.values()]
    assert len({replica.queue_digest() for replica in replicas}) == 1
    assert {replica.green for replica in replicas} == {max(each.green for each in told.values())}
    assert all(replica.has(each) for replica in replicas for each in everything)


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(1, 6))
def test_who_is_too_far_takes_no_part_and_the_rest_are_near_each_other(
    logs: dict[ProcId, tuple[Any, ...]], far: int
) -> None:
    replicas = {name: recover(name, SETTINGS4, log) for name, log in logs.items()}
    told = {name: state_of(replica, PLACE) for name, replica in replicas.items()}
    told[min(told)] = msgspec.structs.replace(told[min(told)], far=far)  # who would wait for least decides
    plan = draw_plan(told)
    assert sorted((*plan.members, *plan.far)) == sorted(told)
    assert plan.members, "somebody is always near"
    greens = [told[name].green for name in plan.members]
    assert max(greens) - min(greens) <= far
    assert told[plan.source].green == max(greens)
    assert plan.last - plan.first + 1 <= far


def test_who_lacks_what_the_source_has_discarded_is_left_behind() -> None:
    source, other = state("p", green=10, low=5), state("q", green=4)
    plan = draw_plan(states(source, other, state("r", green=5)))
    assert (plan.members, plan.far) == (("p", "r"), ("q",))
    longer = state("q", green=10, low=3)
    assert draw_plan(states(source, longer, state("r", green=4))).source == "q", "it keeps the longer log"


# Recovery.


class Lives:
    """A storm over the adversary, looked at now and then: what replicas are, and what their disks have."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.plan = draw_storm(ENGINE_OVER_ADVERSARY, seed, nodes, "storm")
        self.world: World = prepare(self.plan)

    def moments(self, every: int) -> Iterator[tuple[Replica, tuple[Any, ...]]]:
        """A replica between two events, and its records; whatever it has appended is on the disk, forced or not."""
        world, left = self.world, every
        while (due := world.agenda.next_time()) is not None and due <= self.plan.horizon:
            world.agenda.step()
            left -= 1
            if not left:
                left = every
                yield from self._now()

    def _now(self) -> Iterator[tuple[Replica, tuple[Any, ...]]]:
        for process in self.world.processes.values():
            if process.is_running and process.router is not None:
                layers = process.router.layers
                found = read_log(process.disk.contents(), {layer.channel: layer.disk for layer in layers})
                yield replica_of(self.world, process.name), tuple(found.pasts[layers[0].channel].records)


def told_by(replica: Replica) -> dict[str, Any]:
    """What of a replica must survive."""
    red_cut = dict(replica.red_cut)
    if replica.ongoing:
        red_cut[replica.me] = replica.index
    reds = {each: body for each, body in replica.bodies.items() if not replica.is_green(each)}
    return {
        "green": replica.green,
        "digest": replica.digest,
        "green_cut": replica.green_cut,
        "red_cut": red_cut,
        "reds": reds | {each.id: each for each in replica.ongoing.values()},
        "index": replica.index,
        "lamport": replica.lamport,
        "prim": replica.prim,
        "attempt_index": replica.attempt_index,
        "vulnerable": replica.vulnerable,
        "yellow": replica.yellow if replica.yellow.is_valid else None,
        "roster": replica.roster,
        "who": (replica.birth, replica.is_new),
    }


def tail(replica: Replica, low: int) -> list[Any]:
    """The order after this position, with its digests and bodies."""
    positions = range(low + 1, replica.green + 1)
    return [
        (replica.at(position), replica.digest_at(position), replica.bodies[replica.at(position)])
        for position in positions
    ]


LIVES = pytest.mark.parametrize(("nodes", "seed"), [(3, 1), (3, 5), (5, 4)])


@LIVES
def test_the_whole_log_gives_the_replica_that_it_was(nodes: int, seed: int) -> None:
    moments = 0
    for replica, records in Lives(nodes, seed).moments(every=200):
        moments += 1
        again = recover(replica.me, replica.settings, records)
        assert told_by(again) == told_by(replica)
        assert again.low <= replica.low, "what was discarded may still be in the log"
        assert tail(again, replica.low) == tail(replica, replica.low)
        assert all(again.promised.get(name, (0, 0)) <= attempt for name, attempt in replica.promised.items())
        others = {name: line for name, line in again.green_lines.items() if name != replica.me}
        assert all(line <= replica.green_lines[name] for name, line in others.items()), "no more than was known"
    assert moments > 20


@LIVES
def test_every_prefix_of_a_log_is_a_replica_and_none_knows_less_than_the_one_before(nodes: int, seed: int) -> None:
    tried = 0
    for replica, records in Lives(nodes, seed).moments(every=900):
        before = (0, 0, 0)
        for end in range(len(records) + 1):
            again = recover(replica.me, replica.settings, records[:end])
            invariants.check_queue(again)
            assert again.reds() == sorted(again.reds())
            assert all(each in again.bodies for each in (*again.order, *again.reds()))
            knows = again.prim.prim_index, again.attempt_index, again.green
            assert knows[:2] >= before[:2]
            assert knows[2] >= before[2]
            before = knows
            tried += 1
    assert tried > 100


@LIVES
def test_a_log_that_is_begun_anew_gives_the_same_replica(nodes: int, seed: int) -> None:
    has_discarded = False
    for replica, _ in Lives(nodes, seed).moments(every=200):
        again = recover(replica.me, replica.settings, tuple(checkpoint_of(replica)))
        assert told_by(again) == told_by(replica)
        assert (again.low, again.low_cut, again.promised) == (replica.low, replica.low_cut, replica.promised)
        assert tail(again, again.low) == tail(replica, replica.low)
        assert {**again.green_lines, replica.me: 0} == {**replica.green_lines, replica.me: 0}
        once_more = recover(replica.me, replica.settings, tuple(checkpoint_of(again)))
        assert once_more == again, "and from then on to the last field"
        has_discarded |= replica.low > 0
    assert has_discarded


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ((msgspec.structs.replace(BASE, cluster=b"other"),), "of another cluster"),
        ((BASE, bundle("q", 2)), "q#2 stands in the log where it cannot"),
        ((BASE, bundle("q", 1), bundle("q", 1)), "q#1 stands in the log where it cannot"),
        ((BASE, bundle("q", 1), Ordered(2, (BundleId("q", 1),))), "position 2 stands in the log after 0"),
        ((BASE, Ordered(1, (BundleId("q", 1),))), "q#1 is green in the log before it can be"),
        ((BASE, bundle("q", 1), Ordered(1, (BundleId("q", 1), BundleId("q", 1)))), "q#1 is green in the log before"),
    ],
)
def test_records_that_no_replica_can_have_written_are_refused_and_it_says_what_to_do(
    records: tuple[Any, ...], why: str
) -> None:
    with pytest.raises(LogRefused, match=why) as refusal:
        recover("p", SETTINGS, records)
    assert "give this node an empty directory" in str(refusal.value)
    (halt,) = [each for each in Engine(SETTINGS).handle(0.0, Start("p", 2, records)) if isinstance(each, Halt)]
    assert halt.reason == str(refusal.value)


# The outbox.


def handed(effects: list[Effect]) -> list[tuple[int, Any]]:
    """The multicasts among these, each with its number and what it says."""
    calls = [effect.payload for effect in effects if isinstance(effect, Downcall)]
    return [(call.message.number, decode(call.payload)) for call in calls]


def pumped(outbox: Outbox, durable: int = 0) -> list[tuple[int, Any]]:
    out: list[Effect] = []
    outbox.pump(durable, out)
    return handed(out)


LINES = [Line("p", number) for number in range(1, 5)]


def test_what_the_port_did_not_take_is_said_again_in_order_under_the_same_numbers() -> None:
    outbox = Outbox("p", 1)
    for line in LINES[:3]:
        outbox.say(line, Service.AGREED)
    assert pumped(outbox) == [(1, LINES[0]), (2, LINES[1]), (3, LINES[2])]
    outbox.on_sent(MessageId("p", 1, 1))
    outbox.on_busy(MessageId("p", 1, 2))
    outbox.on_busy(MessageId("p", 1, 3))
    outbox.say(LINES[3], Service.AGREED)
    assert pumped(outbox) == [], "the port is busy"
    outbox.on_ready()
    assert pumped(outbox) == [(2, LINES[1]), (3, LINES[2]), (4, LINES[3])]
    for number in (2, 3, 4):
        outbox.on_sent(MessageId("p", 1, number))
    assert not outbox.handed


def test_a_message_waits_for_its_barrier_and_what_is_behind_it_waits_too() -> None:
    outbox = Outbox("p", 1)
    outbox.say(LINES[0], Service.AGREED, gate=2)
    outbox.say(LINES[1], Service.AGREED)
    assert pumped(outbox, durable=1) == []
    assert pumped(outbox, durable=2) == [(1, LINES[0]), (2, LINES[1])]


def test_what_only_an_old_meeting_could_use_is_forgotten_and_bundles_are_not() -> None:
    outbox = Outbox("p", 1)
    for message in (bundle("p", 1), state("p"), CPC(HERE, "p", 0, 1, b""), LINES[0]):
        outbox.say(message, Service.SAFE)
    outbox.forget_control()
    assert pumped(outbox) == [(1, bundle("p", 1)), (2, LINES[0])]


def test_what_is_seen_when_a_message_is_said_is_seen_once() -> None:
    outbox, out = Outbox("p", 1), list[Effect]()
    outbox.say(CPC(HERE, "p", 0, 1, b""), Service.SAFE, witness=Trace("cpc"))
    outbox.pump(0, out)
    outbox.on_busy(MessageId("p", 1, 1))
    outbox.on_ready()
    outbox.pump(0, out)
    assert [each for each in out if isinstance(each, Trace)] == [Trace("cpc")]
    assert len(handed(out)) == 2


# Requests: an engine alone in its cluster, in the hand of a test.


class Alone:
    """Nothing is durable, delivered or applied before the test says so."""

    def __init__(self, **changes: Any) -> None:
        self.engine = Engine(Settings(servers=("p",), **changes))
        self.port: deque[Multicast] = deque()
        self.asked: deque[tuple[int, Any]] = deque()
        self.told: list[Any] = []
        self.barriers: list[int] = []
        self.all: list[Effect] = []
        self.tell(Start("p", 1))
        conf = Configuration(ConfId(1, "p"), ("p",))
        self.tell(Upcall(RegularConf(conf)))

    def tell(self, event: Event) -> list[Effect]:
        """The router's part, as far as it matters here: gates are looked after by the core itself, too."""
        effects = self.engine.handle(0.0, event)
        self.all += effects
        for effect in effects:
            match effect:
                case Barrier(ticket):
                    self.barriers.append(ticket)
                case Downcall(Multicast() as call):
                    self.port.append(call)
                case Upcall(payload):
                    self.told.append(payload)
                case Call(call, _, request):
                    self.asked.append((call, request))
        return effects

    def force(self) -> None:
        while self.barriers:
            self.tell(Durable(self.barriers.pop(0)))

    def deliver(self) -> None:
        while self.port:
            call = self.port.popleft()
            self.tell(Upcall(Sent(call.message)))
            self.tell(Upcall(Deliver(call.message, call.service, call.payload)))

    def answer(self) -> None:
        while self.asked:
            call, request = self.asked.popleft()
            match request:
                case Open():
                    self.tell(Answered(call, Opened(0, b"", 0)))
                case Apply(position, chunks):
                    outcomes = tuple(Outcome(Verdict.DONE, chunk, position) for chunk in chunks)
                    self.tell(Answered(call, Applied(position, b"", outcomes)))
                case Commit(position):
                    self.tell(Answered(call, Committed(position, position)))

    def settle(self) -> Alone:
        while self.barriers or self.port or self.asked:
            self.force()
            self.deliver()
            self.answer()
        return self

    def submit(self, *tickets: int, size: int = 20, level: Level = Level.LOCAL) -> None:
        for ticket in tickets:
            self.tell(Downcall(Submit(ticket, packed(ticket, size), 1, level)))

    @property
    def state(self) -> str:
        return type(self.engine.phase).__name__

    def bundles(self) -> list[int]:
        """How many submissions each bundle holds, in the order in which they were made."""
        return [
            len(each.record.actions)
            for each in self.all
            if isinstance(each, Append) and isinstance(each.record, Bundle)
        ]


def packed(number: int, size: int) -> bytes:
    """One action, in exactly so many bytes."""
    empty = len(pack((Action("s", number, b""),)))
    return pack((Action("s", number, b"x" * (size - empty)),))


def replies(alone: Alone) -> list[int]:
    return [each.ticket for each in alone.told if isinstance(each, Replied)]


def test_what_comes_while_a_body_is_on_its_way_to_the_disk_is_the_next_bundle() -> None:
    alone = Alone().settle()
    assert alone.state == "RegPrim"
    alone.submit(1, 2, 3)
    assert alone.bundles() == [1], "the first goes at once"
    alone.submit(4)
    alone.force()
    assert alone.bundles() == [1, 3]
    alone.settle()
    assert [each.ticket for each in alone.told if isinstance(each, Accepted)] == [1, 2, 3, 4]
    assert replies(alone) == [1, 2, 3, 4]
    places = [(each.position, each.sub) for each in alone.told if isinstance(each, Replied)]
    assert places == [(1, 0), (2, 0), (2, 1), (2, 2)]


def test_nothing_is_sent_or_accepted_before_its_body_is_on_disk_and_nothing_answered_before_its_mark_is() -> None:
    alone = Alone().settle()
    alone.submit(1)
    assert not alone.port
    assert alone.told == []
    alone.force()
    assert [each.ticket for each in alone.told] == [1]
    assert len(alone.port) == 1
    alone.deliver()
    alone.answer()
    (answer,) = [each for each in alone.all if isinstance(each, Upcall) and isinstance(each.payload, Replied)]
    assert answer.gate == alone.barriers[-1], "the router holds it until the green mark is on disk"


def test_at_level_memory_the_answer_waits_for_no_disk() -> None:
    alone = Alone().settle()
    alone.submit(1, level=Level.MEMORY)
    alone.force()
    alone.deliver()
    alone.answer()
    (answer,) = [each for each in alone.all if isinstance(each, Upcall) and isinstance(each.payload, Replied)]
    assert answer.gate is None
    assert alone.barriers, "though its mark is on its way"


def test_a_bundle_holds_no_more_than_it_may_and_submissions_stay_whole_and_in_order() -> None:
    alone = Alone(bundle_bytes=100).settle()
    alone.submit(*range(1, 10), size=40)
    alone.settle()
    assert alone.bundles() == [1, 2, 2, 2, 2]
    assert replies(alone) == list(range(1, 10))


@pytest.mark.parametrize(
    ("actions", "count", "why"),
    [
        (b"\xff", 1, "these are 0 actions, not 1"),
        (b"", 1, "these are 0 actions, not 1"),
        (b"\xdd\xff\xff\xff\xff", 2**32 - 1, "these are 0 actions"),
        (pack((Action("s", 1, b"x"),)), 2, "these are 1 actions, not 2"),
    ],
)
def test_what_no_database_could_open_is_refused_for_good(actions: bytes, count: int, why: str) -> None:
    alone = Alone().settle()
    alone.tell(Downcall(Submit(1, actions, count)))
    (told,) = alone.told
    assert isinstance(told, Refused)
    assert (told.is_retriable, why in told.reason) == (False, True)
    assert alone.bundles() == []


@pytest.mark.parametrize("change", [Weigh("p", -1), Leave("no such!"), Announce("p", (Procedure("f", 0, b""),))])
def test_a_change_that_nobody_could_read_is_refused_for_good(change: Change) -> None:
    alone = Alone().settle()
    alone.tell(Downcall(Reconfigure(1, change)))
    (told,) = alone.told
    assert isinstance(told, Refused)
    assert not told.is_retriable
    assert alone.bundles() == []


def test_a_question_that_nobody_could_ask_is_refused() -> None:
    alone = Alone().settle()
    alone.tell(Downcall(Ask(1, OutcomeOf("s", -(2**70)))))
    alone.tell(Downcall(Ask(2, OutcomeOf("\ud800", 1))))
    assert [isinstance(each, Refused) for each in alone.told] == [True, True]


def test_what_is_too_large_for_any_bundle_is_refused_for_good() -> None:
    alone = Alone(bundle_bytes=100).settle()
    alone.submit(1, size=101)
    alone.submit(2, size=100)
    (told,) = alone.told
    assert isinstance(told, Refused)
    assert not told.is_retriable
    assert "101 bytes of actions are more than the 100 that a bundle holds; submit fewer" in told.reason
    alone.settle()
    assert replies(alone) == [2]


def test_when_too_many_wait_the_next_is_refused_and_may_be_asked_again() -> None:
    """While the configuration changes, nothing is bundled."""
    alone = Alone(buffered=3).settle()
    trans = Configuration(ConfId(1, "p"), ("p",))
    alone.tell(Upcall(TransitionalConf(trans)))
    alone.submit(1, 2, 3, 4)
    (told,) = alone.told
    assert isinstance(told, Refused)
    assert (told.ticket, told.is_retriable) == (4, True)
    assert "3 submissions wait" in told.reason
    assert alone.bundles() == []

    alone.tell(Upcall(RegularConf(Configuration(ConfId(2, "p"), ("p",)))))
    alone.settle()
    alone.submit(4)
    alone.settle()
    assert replies(alone) == [1, 2, 3, 4]


def test_no_more_bundles_are_under_way_than_may_be() -> None:
    alone = Alone(ongoing=2).settle()
    for ticket in range(1, 6):
        alone.submit(ticket)
        alone.force()
    assert alone.bundles() == [1, 1], "three submissions wait behind two bundles"
    alone.settle()
    assert alone.bundles() == [1, 1, 3]
    assert replies(alone) == [1, 2, 3, 4, 5]


def test_a_busy_port_delays_and_loses_nothing() -> None:
    alone = Alone().settle()
    alone.submit(1)
    alone.force()
    call = alone.port.popleft()
    alone.tell(Upcall(Busy(call.message)))
    alone.submit(2)
    alone.force()
    assert not alone.port
    alone.tell(Upcall(Ready()))
    assert [each.message.number for each in alone.port] == [call.message.number, call.message.number + 1]
    alone.settle()
    assert replies(alone) == [1, 2]


def test_a_port_that_takes_no_message_of_such_a_size_stops_the_node() -> None:
    alone = Alone().settle()
    effects = alone.tell(Upcall(TooLarge(MessageId("p", 1, 7), 500)))
    (halt,) = [each for each in effects if isinstance(each, Halt)]
    assert "no message of more than 500 bytes" in halt.reason


def test_what_no_engine_says_is_ignored_by_name_and_what_cannot_be_told_stops_the_node() -> None:
    alone = Alone().settle()
    effects = alone.tell(Upcall(Deliver(MessageId("q", 1, 1), Service.SAFE, b"\x00garbage")))
    assert Ignored("no message of this protocol") in effects
    elsewhere = Meeting(ConfId(7, "z"))
    for message in (CPC(elsewhere, "q", 0, 1, b""), Retrans(elsewhere, "q", None, (), True)):
        effects = alone.tell(Upcall(Deliver(MessageId("q", 1, 2), Service.SAFE, encode(message))))
        assert Ignored("of another meeting") in effects
    with pytest.raises(Impossible):
        alone.tell(Upcall(RegularConf(Configuration(ConfId(9, "p"), ("p",)))))
    with pytest.raises(Impossible, match="the first event of a life is its start"):
        Engine(SETTINGS).handle(0.0, Durable(1))


def test_messages_are_what_they_were_after_a_journey() -> None:
    green = chained(NO_ORDER, BundleId("p", 1), 7)
    for message in (bundle("p", 1), state("q", digest=green, vulnerable=TRIED), CPC(HERE, "r", 1, 2, b"q"), LINES[0]):
        assert decode(encode(message)) == message
    assert decode(b"") is None
    assert decode(pack((Action("s1", 1, b"x"),))) is None


# Admission.


@pytest.mark.parametrize(
    ("others", "who", "why"),
    [
        ({}, "", ""),
        ({"r": {"cluster": b"x"}}, "r", "other servers, weights or salt"),
        ({"p": {"red_cut": (("r", 5),)}, "r": {"red_cut": (("r", 5),)}}, "", ""),
        (
            {"p": {"red_cut": (("r", 5),)}, "r": {"red_cut": (("r", 4),)}},
            "r",
            "p has its bundle r#5, but it knows only 4",
        ),
        ({"p": {"green_lines": (("r", 3),)}}, "r", "p was told that it has the order up to 3 on disk, but it has 0"),
        ({"p": {"promised": (("r", 0, 2),)}, "r": {"attempt_index": 2}}, "", ""),
        ({"p": {"promised": (("r", 0, 2),)}, "r": {"attempt_index": 1}}, "r", "p saw it agree to attempt (0, 2)"),
        ({"p": {"promised": (("r", 0, 2),)}, "r": {"prim": NEW}}, "", ""),
        ({"q": {"digest": b"x"}}, "q", "its order up to position 0 differs from the others'"),
        ({"q": {"digest": b"x", "green": 1}}, "", ""),
        ({"q": {"digest": b"x"}, "r": {"green": 1}}, "p q", "its order up to position 0 differs"),
    ],
)
def test_with_whom_no_meeting_can_be_held(others: dict[ProcId, dict[str, Any]], who: str, why: str) -> None:
    """A stranger, a disk that is older than its server, an order that differs; of two that differ, neither."""
    found = refused(states(*(state(name, **others.get(name, {})) for name in P3)))
    assert " ".join(sorted(found)) == who
    assert all(why in reason for reason in found.values())


def test_a_server_that_does_not_exist_is_a_stranger() -> None:
    found = refused(states(state("p"), state("q"), state("z")))
    assert found == {"z": "z is no server of this cluster, whose servers are p q r"}


def test_an_engine_that_was_never_started_is_nowhere() -> None:
    assert isinstance(Engine(SETTINGS).phase, Boot)
