"""Profiles draw what they state; every kind of fault can be switched on alone; plans survive being saved."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest

from greenline.simulation.cluster import Cluster
from greenline.simulation.farm import Batch, Judging
from greenline.simulation.faults import Ambush, Crash, OneWay, Partition, Pause, Weather
from greenline.simulation.plan import Plan, draw_plan, names_for
from greenline.simulation.play import End, play
from greenline.simulation.profiles import draw_schedule
from greenline.simulation.schedule import COMINGS, KINDS
from greenline.simulation.shrink import steps
from greenline.simulation.subjects import NOTICEBOARD

NAMES = names_for(5)
DISK = {"disk-slow", "disk-full", "disk-fail"}


def schedules(profile: str) -> list[tuple[object, ...]]:
    return [draw_schedule(profile, Random(seed), NAMES, 4.0) for seed in range(300)]


def test_calm_has_no_faults() -> None:
    assert set(schedules("calm")) == {()}


def test_lossy_stays_within_its_rates_and_always_loses() -> None:
    for schedule in schedules("lossy"):
        rates = {fault.what: fault.rate for fault in schedule if isinstance(fault, Weather)}
        assert 0.01 <= rates["loss"] <= 0.10
        assert rates["duplication"] <= 0.05
        assert rates["reordering"] <= 0.20


def test_flapping_has_partitions_and_one_way_cuts() -> None:
    for schedule in schedules("flapping"):
        kinds = Counter(type(fault) for fault in schedule)
        assert kinds[Partition] >= 3
        assert kinds[OneWay] >= 1


def test_every_storm_has_its_share_of_everything_that_is_stated() -> None:
    seen: Counter[str] = Counter()
    worst: Counter[str] = Counter()
    for schedule in schedules("storm"):
        kinds = Counter(fault.kind for fault in schedule)  # type: ignore[attr-defined]
        assert kinds["one-way"] >= 1
        assert kinds["ambush"] >= 2
        assert kinds["crash"] >= 1
        assert kinds["pause"] >= 1
        assert any(kinds[kind] for kind in DISK)
        seen.update(kinds.keys())
        for fault in schedule:
            if isinstance(fault, Weather):
                worst[fault.what] = max(worst[fault.what], round(fault.rate * 100))
    everywhere = set(KINDS) - {"blackout", *COMINGS}
    assert set(seen) == everywhere - {"flapping", "overlap"}, "those two are schedules of partitions"
    crashes = [fault for schedule in schedules("storm") for fault in schedule if isinstance(fault, Crash)]
    assert {fault.tear for fault in crashes} == {True, False}
    assert {0.0, 1.0} < {fault.keep for fault in crashes}
    assert {fault.orders for fault in crashes} >= set(range(12))
    assert all(28 <= worst[what] <= 30 for what in ("loss", "duplication", "reordering"))


@pytest.mark.slow
def test_every_storm_strikes_at_least_twice_while_membership_changes() -> None:
    judging = Judging()
    for report in judging.reports(Batch(tuple(draw_plan(NOTICEBOARD, seed, 5, "storm") for seed in range(40)))):
        assert report.counts["faults during membership changes"] >= 2, report.plan.run
        assert report.counts["steps"] < 20_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in COMINGS])
def test_every_kind_of_fault_can_be_switched_on_alone_and_breaks_nothing(kind: str) -> None:
    plans = tuple(draw_plan(NOTICEBOARD, seed, 4, "calm", (kind,)) for seed in range(6))
    for plan in plans:
        drawn = {fault.kind for fault in plan.schedule}
        assert drawn == ({"partition"} if kind in ("flapping", "overlap") else {kind})
    for report in Judging().reports(Batch(plans)):
        assert report.broken == []
        assert report.end is End.QUIET


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["lossy", "flapping", "storm"])
def test_the_right_protocol_breaks_no_rule(profile: str) -> None:
    plans = tuple(draw_plan(NOTICEBOARD, seed, nodes, profile) for nodes in (2, 3, 5) for seed in range(10))
    for report in Judging().reports(Batch(plans)):
        assert report.broken == []
        assert report.end is End.QUIET


def test_an_overlap_has_somebody_on_both_sides_and_a_flapping_link_flaps() -> None:
    for seed in range(50):
        (overlap, *_) = draw_schedule("calm", Random(seed), NAMES, 4.0, ("overlap",))
        assert isinstance(overlap, Partition)
        assert len(set.intersection(*map(set, overlap.sides))) == 1
        assert len(draw_schedule("calm", Random(seed), NAMES, 4.0, ("flapping",))) >= 3


def test_a_port_becomes_busy_in_some_runs() -> None:
    busy = [play(draw_plan(NOTICEBOARD, seed, 3, "calm")).rows for seed in range(30)]
    assert any(row.kind == "busy" for rows in busy for row in rows)


def test_one_process_has_no_network_to_fail() -> None:
    with pytest.raises(ValueError, match="at least two"):
        draw_schedule("storm", Random(0), ("p",), 1.0)


def test_a_plan_that_was_saved_is_the_same_plan() -> None:
    for seed in range(20):
        plan = draw_plan(NOTICEBOARD, seed, 5, "storm")
        assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_plan_is_told_in_order() -> None:
    plan = draw_plan(NOTICEBOARD, 5, 3, "storm")
    times = [float(step.split(" s")[0]) for step in steps(plan)]
    assert times == sorted(times)
    assert len(times) >= len(plan.schedule) + len(plan.requests)


def test_a_fault_in_a_world_with_one_process_less_names_it_no_more() -> None:
    crash = Crash(at=0, until=1, process="p")
    parted = Partition(at=0, until=1, sides=(("p",), ("q", "r")))
    assert crash.without("p") is None
    assert crash.without("q") == crash
    assert parted.without("p") is None
    assert parted.without("q") == Partition(at=0, until=1, sides=(("p",), ("r",)))
    assert OneWay(at=0, until=1, senders=("p", "q"), receivers=("r",)).without("r") is None
    assert Ambush(at=0, until=0, delay=0, patience=1, bait=parted, fault=crash).without("p") is None
    assert Pause(at=0, until=1, process="q").without("p") is not None


def test_more_processes_than_letters_have_names_too() -> None:
    names = names_for(64)
    assert len(set(names)) == 64
    assert names[:3] == ("p", "q", "r")


def test_an_ambush_waits_for_a_change_and_provokes_one_if_none_comes() -> None:
    board = Cluster("p q r").settle()
    at = board.world.agenda.now
    bait = Partition(at=0, until=0.1, sides=(("p",), ("q", "r")))
    fault = Crash(at=0, until=0.1, process="r")
    board.world.schedule((Ambush(at=at, until=at, delay=0.0, patience=0.5, bait=bait, fault=fault),))
    board.wait(0.4)
    assert board.world.counts["faults: crash"] == 0, "nothing changes, so it waits"
    board.settle()
    told = [row.detail or "" for row in board.rows if row.kind == "fault"]
    assert told[1:3] == [f"over: {told[0]}", str(bait)]
    assert board.world.counts["faults during membership changes"] == 0, "alone is no exchange: nobody to talk to"
    board["p"].multicast("x")
    board.settle()
    assert board.world.counts["faults during membership changes"] == 1
    assert board.world.counts["faults: crash"] == 1
