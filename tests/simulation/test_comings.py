"""Replicas that come and go: who is no founder arrives later, who leaves or is removed never returns."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from greenline.kernel import evidence
from greenline.kernel.identities import ProcId
from greenline.replication.port import Joined, Leave, Left, Weigh
from greenline.replication.settings import Settings
from greenline.simulation.cluster import Cluster
from greenline.simulation.comings import Arrival, Departure, Interception, Removal, Weighing
from greenline.simulation.engine_coverage import life_of_an_engine
from greenline.simulation.faults import Crash
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import End, play, prepare
from greenline.simulation.profiles import LEAST_LEFT, MOST_LEAVERS
from greenline.simulation.schedule import COMINGS
from greenline.simulation.scripted import Scripted, over_script
from greenline.simulation.shrink import shrink
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING, NOTICEBOARD
from tests.simulation.test_clients import wants


def cluster(names: str = "p q r", newcomers: str = "s") -> Cluster:
    return Cluster(names, subject=ENGINE_OVER_RING, newcomers=newcomers).settle()


def gone(servers: Cluster) -> list[ProcId | None]:
    return [row.members for row in servers.rows if row.kind == evidence.GONE]


def finals(servers: Cluster) -> list[str | None]:
    return [row.members for row in servers.quiet_rows() if row.kind == evidence.FINAL]


def begin(servers: Cluster, fault: Arrival | Departure | Removal | Weighing | Interception) -> Cluster:
    servers.world.begin(fault.moved_to(servers.world.agenda.now))
    return servers


# In a cluster.


def test_a_newcomer_is_down_until_it_arrives_and_then_becomes_a_replica() -> None:
    servers = cluster()
    assert not servers.world["s"].is_up
    assert servers.world.founders == ("p", "q", "r")
    assert finals(servers) == ["p", "q", "r"]
    servers["p"].submit("append l1 1")
    servers.settle().start("s").settle()
    assert [type(each) for each in servers["s"].events] == [Joined]
    assert servers["s"].database == servers["p"].database
    assert finals(servers) == ["p", "q", "r", "s"]


def test_a_newcomer_that_nobody_helps_is_still_waited_for() -> None:
    servers = cluster().partition("p q r | s").start("s").settle()
    assert servers.world.still_waiting() == ["s is no replica"]
    assert finals(servers) == ["p", "q", "r"]
    servers.heal().settle()
    assert servers.world.still_waiting() == []


def test_who_was_told_that_it_has_left_is_stopped_for_good() -> None:
    servers = cluster(newcomers="")
    servers["p"].reconfigure(Leave("r"))
    servers.wait_until(lambda: any(isinstance(each, Left) for each in servers["r"].events)).settle()
    assert gone(servers) == ["r"]
    assert servers.living == ("p", "q")
    assert not servers.world["r"].is_up
    servers.world["r"].start_if_wanted()
    assert not servers.world["r"].is_up
    assert finals(servers) == ["p", "q"]


def test_a_departure_is_asked_for_until_it_is_answered() -> None:
    servers = cluster(newcomers="").partition("p | q r").settle()
    begin(servers, Departure(at=0.0, until=0.0, process="q", asked="p")).wait(0.1)
    assert servers.world.still_waiting() == ["nobody has answered: leave q"]
    servers.heal().settle()
    assert servers.world.still_waiting() == []
    assert gone(servers) == ["q"]


@pytest.mark.parametrize("is_void", [False, True])
def test_a_removal_is_for_good_once_it_is_answered(is_void: bool) -> None:
    servers = cluster(newcomers="")
    removal = Removal(at=0.0, until=5.0, process="r", is_void=is_void)
    begin(servers, removal).settle()
    assert gone(servers) == ["r"]
    assert not servers.world["r"].is_up
    assert servers["p"].state == "RegPrim"
    assert not servers.world.active


def test_a_removal_that_nobody_answers_is_given_up() -> None:
    servers = cluster("p q", newcomers="").crash("p")
    begin(servers, Removal(at=0.0, until=1.0, process="q")).wait(2.0)
    assert gone(servers) == []
    assert servers.world["q"].is_up
    servers.restart("p").settle()
    assert servers.world.still_waiting() == []


def test_a_weighing_is_asked_for() -> None:
    servers = begin(cluster(newcomers=""), Weighing(at=0.0, until=0.0, process="q", weight=3)).settle()
    assert any(row.kind == "roster" and row.detail == "weigh q 3 done" for row in servers.rows)
    servers["p"].reconfigure(Weigh("q", 1))
    servers.settle()
    assert any(row.kind == "roster" and row.detail == "weigh q 1 done" for row in servers.rows)


@pytest.mark.parametrize("strikes", ["source", "newcomer", "both"])
def test_an_interception_strikes_when_a_snapshot_is_on_its_way(strikes: str) -> None:
    servers = cluster()
    intercept = Interception(at=0.0, until=0.0, delay=0.0, strikes=strikes, lasts=0.5)  # type: ignore[arg-type]
    begin(servers, intercept).wait(1.0)
    assert servers.world.counts["faults during a transfer"] == 0
    servers.start("s").settle()
    assert servers.world.counts["faults during a transfer"] == 1
    struck = [row.detail or "" for row in servers.rows if row.kind == evidence.FAULT][2]
    (source, *_) = [row.members for row in servers.rows if row.kind == "transfer"]
    assert struck.startswith({"source": f"{source} crashes", "newcomer": "s crashes", "both": "partition"}[strikes])
    assert servers.world.still_waiting() == []


def test_a_scripted_medium_has_newcomers_too() -> None:
    subject = over_script(lambda me, founders: Settings(servers=founders))
    servers = Scripted("p q", subject, newcomers="r").settle().form("p q").settle()
    assert servers["p"].state == "RegPrim"
    servers.restart("r").settle().form("p q r").settle()
    assert servers["r"].database == servers["p"].database


# In a plan.


def plans(count: int, nodes: int = 4, profile: str = "storm", only: tuple[str, ...] = ()) -> list[Plan]:
    return [draw_plan(ENGINE_OVER_ADVERSARY, seed, nodes, profile, only) for seed in range(count)]


def test_storms_have_their_share_of_comings_and_goings_and_never_take_too_many() -> None:
    seen: Counter[str] = Counter()
    for nodes in (2, 3, 5):
        for plan in plans(200, nodes):
            kinds = Counter(fault.kind for fault in plan.schedule)
            leavers = [fault.process for fault in plan.schedule if isinstance(fault, Departure | Removal)]
            assert len(set(leavers)) == len(leavers) <= min(MOST_LEAVERS, len(plan.everybody) - LEAST_LEFT)
            assert {fault.process for fault in plan.schedule if isinstance(fault, Arrival)} <= set(plan.newcomers)
            seen.update({kind for kind in COMINGS if kinds[kind]})
            seen["newcomers"] += bool(plan.newcomers)
            assert plan.strangers() == []
            assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
    assert 300 < seen["newcomers"] < 420
    assert 110 < seen["departure"] < 240
    assert 60 < seen["removal"] < 180
    assert 100 < seen["weighing"] < 200
    assert 100 < seen["interception"] < 220


def test_only_replicas_come_and_go_and_only_in_storms() -> None:
    assert not any(plan.newcomers or plan.schedule for plan in plans(20, profile="calm"))
    assert draw_plan(NOTICEBOARD, 1, 4, "storm").newcomers == ()
    with pytest.raises(ValueError, match="nobody comes and goes"):
        draw_plan(NOTICEBOARD, 1, 4, "calm", ("arrival",))


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMINGS)
def test_every_kind_of_coming_and_going_can_be_switched_on_alone(kind: str) -> None:
    for plan in plans(3, 3, "calm", (kind,)):
        assert {fault.kind for fault in plan.schedule} <= {kind, "arrival"}
        run = play(plan)
        assert run.end is End.QUIET, run.rows[-1].detail


def test_whoever_has_not_arrived_by_the_healing_arrives_then() -> None:
    plan = Plan(core=ENGINE_OVER_RING.name, seed=1, names=("p", "q", "r"), newcomers=("s",), horizon=0.5)
    run = play(plan)
    assert run.end is End.QUIET
    assert [row.members for row in run.rows if row.kind == evidence.FINAL] == ["p", "q", "r", "s"]
    healed = next(place for place, row in enumerate(run.rows) if row.kind == evidence.HEALED)
    assert all(place > healed for place, row in enumerate(run.rows) if row.process == "s")


def test_a_plan_without_newcomers_is_read_as_ever() -> None:
    kept = b'{"core": "engine-over-ring", "seed": 1, "names": ["p", "q"], "requests": [{"at": 0.1, "process": "p",'
    kept += b' "text": "s1/4 append l1 7", "service": "safe", "level": "local"}]}'
    plan = msgspec.json.decode(kept, type=Plan)
    assert plan.newcomers == ()
    assert play(plan).end is End.QUIET
    with pytest.raises(msgspec.ValidationError, match="two of its processes have one name"):
        msgspec.json.decode(b'{"core": "ring", "seed": 1, "names": ["p", "q"], "newcomers": ["q"]}', type=Plan)


def test_shrinking_leaves_newcomers_out_and_makes_what_is_left_plainer() -> None:
    arrival = Arrival(at=1.0, until=1.0, process="s")
    removal = Removal(at=2.0, until=3.0, process="p", is_void=True, keep=1.0, tear=True)
    crash = Crash(at=1.0, until=2.0, process="t")
    plan = Plan(
        core=ENGINE_OVER_RING.name,
        seed=1,
        names=("p", "q", "r"),
        newcomers=("s", "t"),
        schedule=(arrival, removal, crash),
    )
    short = shrink(plan, lambda candidate: "s" in candidate.newcomers and len(candidate.schedule) > 0)
    assert (short.names, short.newcomers) == (("p", "q"), ("s",))
    short = shrink(plan, lambda candidate: any(isinstance(fault, Removal) for fault in candidate.schedule))
    assert short.newcomers == ()
    assert short.schedule == (Removal(at=2.0, until=3.0, process="p"),)
    departure = Departure(at=0.0, until=0.0, process="p", asked="q")
    assert departure.without("q") == Departure(at=0.0, until=0.0, process="p", asked="p")
    assert departure.without("p") is None


def test_nobody_who_is_gone_is_started_by_a_fault_that_ends() -> None:
    schedule = (
        Removal(at=0.5, until=3.9, process="r"),
        Crash(at=0.4, until=2.0, process="r"),
        Arrival(at=0.6, until=0.6, process="s"),
    )
    plan = Plan(core=ENGINE_OVER_RING.name, seed=1, names=("p", "q", "r"), newcomers=("s",), schedule=schedule)
    world = prepare(plan)
    world.run_until(3.0)
    world.heal()
    world.run_until(6.0)
    assert world.living == ("p", "q", "s")
    assert not world["r"].is_up


def test_what_came_and_went_is_counted() -> None:
    servers = cluster()
    servers.partition("p | q r s").settle().start("s").settle()
    wants(servers, "p", "s1~ add c1 1", "s1/ total").settle()
    servers.heal().settle()
    servers["p"].reconfigure(Leave("q"))
    servers["p"].reconfigure(Weigh("r", 2))
    servers.settle()
    found = life_of_an_engine(servers.rows)
    for what, times in {
        "changes: join done": 1,
        "changes: leave done": 1,
        "changes: weigh done": 1,
        "leaves of members of the component": 1,
        "transfers": 1,
        "databases restored": 1,
        "removed or left for good": 1,
        "relaxed updates accepted outside a primary component": 1,
    }.items():
        assert found[what] == times, what
