"""What ordering costs, counted in simulation: multicasts, forced writes, and bundles that travel again.

Thesis 6.2, discussion: no end-to-end acknowledgement per action; one after each change of membership.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from greenline.kernel.evidence import GENERATE, RETURN, SEND
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.replication.messages import CPC, Bundle, Line, Meeting, Retrans, State
from greenline.replication.port import Level
from greenline.replication.settings import Settings
from greenline.ring.messages import Regular
from greenline.simulation.adversary import Adversary, Temper
from greenline.simulation.cluster import Cluster
from greenline.simulation.disk import FORCE_S
from greenline.simulation.load import replica_of
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY, engine_with
from tests.replication.listening import Said, listen, of, retransmitted

SEED = 7
NAMES = "pqr"


def over_ring(names: str = "p q r") -> Cluster:
    return Cluster(names, SEED, replace(engine_with(), quiet_for=2.0)).settle()


def over_calm_adversary() -> Cluster:
    """It is healed from the beginning, so it brings everybody together and then only delivers."""
    replicas = Cluster("p q r", SEED, ENGINE_OVER_ADVERSARY)
    Adversary(replicas.world, Random(SEED), Temper(step_s=0.0008))
    replicas.world.heal()
    return replicas.settle()


CALM = pytest.mark.parametrize("calm", [over_ring, over_calm_adversary])


def count_forces(replicas: Cluster, slowness: float = 1.0) -> Counter[ProcId]:
    """Forced writes from now on, by whose disk; each so much slower than usual, while databases are as they are."""
    found: Counter[ProcId] = Counter()

    def count(name: ProcId) -> None:
        disk = replicas.world[name].disk
        force = disk.force

        def counted(done: Callable[[], None], failed: Callable[[], None]) -> None:
            found[name] += 1
            disk.slowness = slowness
            force(done, failed)
            disk.slowness = 1.0

        disk.force = counted  # type: ignore[method-assign]

    for name in replicas.names:
        count(name)
    return found


def ask_one_by_one(replicas: Cluster, times: int, level: Level = Level.LOCAL) -> None:
    """One client at p: it asks when it has its answer, and waits a little so that all disks have come to rest."""
    for number in range(times):
        answers = len(replicas["p"].answers) + 1
        replicas["p"].submit(f"append l1 {number}", level=level)
        replicas.wait_until(lambda answers=answers: len(replicas["p"].answers) == answers).wait(0.02)  # type: ignore[misc]


# In a primary component.


@CALM
def test_a_bundle_is_one_multicast_and_nobody_acknowledges_it(calm: Callable[[], Cluster]) -> None:
    """Green lines travel with bundles. Who makes none says its own once in a while, however many actions there were."""
    replicas = calm()
    said, begun, before = listen(replicas.world), replicas.world.agenda.now, len(replicas.rows)
    ask_one_by_one(replicas, 20)

    assert len(of(Bundle, said)) == 20
    assert all(each.service is Service.SAFE for each in said if isinstance(each.message, Bundle))
    assert {type(each.message) for each in said} <= {Bundle, Line}
    intervals = (replicas.world.agenda.now - begun) / Settings(servers=("p",)).line_interval_s
    assert len(of(Line, said)) <= 3 * (intervals + 1)
    kinds = Counter(row.kind for row in replicas.rows[before:])
    assert kinds[GENERATE] == kinds[SEND] == len(said)


@CALM
@pytest.mark.parametrize("level", [Level.LOCAL, Level.MEMORY])
def test_an_action_alone_costs_two_forced_writes_where_it_is_asked_and_one_elsewhere(
    calm: Callable[[], Cluster], level: Level
) -> None:
    """The body before it is sent, the green mark before it is answered. At `memory` the second is made all the same,
    and nobody waits for it."""
    replicas = calm()
    forces = count_forces(replicas)
    ask_one_by_one(replicas, 20, level)
    assert forces == {"p": 40, "q": 20, "r": 20}


@CALM
def test_the_body_is_on_disk_before_it_is_sent(calm: Callable[[], Cluster]) -> None:
    replicas = calm()
    said, before = listen(replicas.world), len(replicas.rows)
    count_forces(replicas, slowness=100)
    ask_one_by_one(replicas, 3)
    made = [row.time for row in replicas.rows[before:] if row.kind == "create"]
    sent = [each.time for each in said if isinstance(each.message, Bundle)]
    assert len(made) == len(sent) == 3
    assert all(later - earlier >= 100 * FORCE_S[0] for earlier, later in zip(made, sent, strict=True))


@CALM
@pytest.mark.parametrize("level", list(Level))
def test_an_answer_waits_for_as_many_disks_as_was_asked_for(calm: Callable[[], Cluster], level: Level) -> None:
    """`memory` for none, `local` for its own, `quorum` for two of three."""
    replicas = calm()
    before = len(replicas.rows)
    count_forces(replicas, slowness=200)
    ask_one_by_one(replicas, 1, level)
    replicas.wait(1.0)
    rows = replicas.rows[before:]
    (answered,) = (row.time for row in rows if row.kind == RETURN and row.colour == "green")
    durable = {row.process: row.time for row in reversed(rows) if row.kind == "durable"}
    assert set(durable) == set(NAMES)
    disks = sum(time <= answered for time in durable.values())
    assert (durable["p"] <= answered) == (level is not Level.MEMORY)
    assert disks >= {Level.MEMORY: 0, Level.LOCAL: 1, Level.QUORUM: 2}[level]


@CALM
def test_many_clients_share_multicasts_and_forced_writes(calm: Callable[[], Cluster]) -> None:
    """Whatever comes while a body is on its way to the disk is the next bundle."""
    replicas = calm()
    said, forces = listen(replicas.world), count_forces(replicas)
    actions = 0
    for number in range(30):
        for name in NAMES:
            actions += 1
            replicas[name].submit(f"append l1 {3 * number}")
        replicas.wait(0.0002)
    replicas.wait_until(lambda: sum(len(replicas[name].answers) for name in NAMES) == actions)
    assert len(of(Bundle, said)) < actions / 3
    assert all(forces[name] < actions / 3 for name in NAMES), "each server has a third of the clients"
    assert sum(forces.values()) < actions


# When the membership changes.


def by_meeting(said: list[Said], kind: type[State | CPC]) -> Counter[Meeting]:
    return Counter(each.message.meeting for each in said if isinstance(each.message, kind))


def test_a_change_costs_a_state_and_a_cpc_of_each_member_and_nothing_else_if_nobody_lacks_anything() -> None:
    replicas = over_ring("p q r s t")
    said = listen(replicas.world)
    replicas.partition("p q r | s t").settle().heal().settle()
    assert {type(each.message) for each in said} == {State, CPC}
    states, cpcs = by_meeting(said, State), by_meeting(said, CPC)
    assert sorted(states.values()) == [2, 3, 5]
    assert sorted(cpcs.values()) == [3, 5], "two of five have no quorum"


def test_in_a_merge_every_bundle_that_somebody_lacks_travels_once_and_no_other() -> None:
    """p q r go on in a primary component, s and t apart from each other: three histories, each with bundles of its
    own, and a fourth that all have."""
    replicas = over_ring("p q r s t")
    for number, name in enumerate("pst"):
        replicas[name].submit(f"append l1 {number}")
    replicas.settle().partition("p q r | s | t").settle()
    for number, name in enumerate("pqqrsstt"):
        replicas[name].submit(f"append l2 {number}")
        replicas.wait(0.05)
    replicas.settle()

    said = listen(replicas.world)
    replicas.heal().settle()
    travelled = Counter(map(str, retransmitted(said)))
    lacked = ["p#2", "q#1", "q#2", "r#1", "s#2", "s#3", "t#2", "t#3"]
    assert travelled == dict.fromkeys(lacked, 1)
    assert max(by_meeting(said, State).values()) == 5
    assert {replica_of(replicas.world, name).green for name in replicas.names} == {3 + len(lacked)}
    assert replicas.broken_rules() == []


def test_who_has_a_bundle_and_lacks_its_place_is_told_the_place_alone() -> None:
    """r had it when the network fell apart, and could not know that p and q would order it."""
    replicas = over_ring()
    packets = replicas.watch(Regular, frm="p", to="q r")
    replicas["p"].submit("append l1 1")
    replicas.wait_until(lambda: len(packets) == 2).wait(0.0012).let_be()
    replicas.partition("p q | r").settle()
    p, r = (replica_of(replicas.world, name) for name in "pr")
    assert (p.green, r.green, len(r.yellow.ids)) == (1, 0, 1)

    said = listen(replicas.world)
    replicas.heal().settle()
    assert list(retransmitted(said)) == []
    (retrans,) = of(Retrans, said)
    assert [str(entry.id) for entry in retrans.greens.entries] == ["p#1"]
    assert r.green == 1
    assert replicas.broken_rules() == []
