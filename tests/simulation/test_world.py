"""The world: what the network, the disks and the clocks do to a core, one fault at a time."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Literal

import pytest

from greenline.kernel.codec import Log
from greenline.kernel.ports import Service
from greenline.simulation.agenda import Agenda
from greenline.simulation.cluster import Cluster
from greenline.simulation.disk import Disk, DiskError
from greenline.simulation.faults import (
    Crash,
    FailingDisk,
    FullDisk,
    OneWay,
    Partition,
    Pause,
    Skew,
    SlowDisk,
    SlowReceiver,
    Spike,
    Weather,
    flapping,
)
from greenline.simulation.network import Latency
from greenline.simulation.schedule import AnyFault
from greenline.simulation.subjects import NOTICEBOARD
from greenline.simulation.world import World
from tests.simulation.echo import echoes, told

LONG = 1000.0


def say(world: World, name: str, *texts: str) -> None:
    for text in texts:
        world[name].multicast(text.encode(), Service.BASIC)


def heard(world: World, name: str) -> list[bytes]:
    return [each[1] for each in told(world, name, "heard")]  # type: ignore[misc]


def during(world: World, fault: AnyFault) -> World:
    world.begin(fault)
    return world


# The agenda.


def test_what_is_due_at_the_same_time_happens_in_the_order_it_was_planned() -> None:
    agenda, order = Agenda(), list[int]()
    agenda.at(1.0, order.append, 1)
    agenda.at(0.5, order.append, 0)
    agenda.at(1.0, order.append, 2)
    while agenda.next_time() is not None:
        agenda.step()
    assert order == [0, 1, 2]
    agenda.at(0.1, order.append, 3)
    agenda.step()
    assert agenda.now == 1.0, "what is past due happens now, and time never runs back"


# The network.


def test_a_packet_takes_its_latency() -> None:
    world = echoes("p q", latency=Latency("constant", 0.007))
    say(world, "p", "x")
    world.run_until(0.0569)
    assert heard(world, "q") == []
    world.run_until(0.0571)
    assert heard(world, "q") == [b"x"]


@pytest.mark.parametrize("kind", ["constant", "uniform", "exponential", "heavy"])
def test_every_distribution_has_its_floor_and_its_tail(
    kind: Literal["constant", "uniform", "exponential", "heavy"],
) -> None:
    chance = Random(1)
    draws = [Latency(kind, 0.01, 0.01).draw(chance) for _ in range(500)]
    assert min(draws) >= 0.01
    assert (max(draws) > 0.01) == (kind != "constant")
    assert (max(draws) > 0.1) == (kind == "heavy")


def test_loss_loses_at_its_rate() -> None:
    world = during(echoes("p q"), Weather(at=0, until=LONG, what="loss", rate=0.3))
    say(world, "p", *map(str, range(1000)))
    world.run_until(1)
    assert 620 < len(heard(world, "q")) < 780


def test_rates_of_loss_combine_as_independent_causes_and_end_alone() -> None:
    world = echoes("p q")
    half, third = (Weather(at=0, until=LONG, what="loss", rate=rate) for rate in (0.5, 0.3))
    world.begin(half)
    world.begin(third)
    assert world.network.loss == pytest.approx(0.65)
    world.end(half)
    assert world.network.loss == pytest.approx(0.3)
    world.end(third)
    assert world.network.loss == 0.0


def test_duplication_duplicates_at_its_rate() -> None:
    world = during(echoes("p q"), Weather(at=0, until=LONG, what="duplication", rate=0.2))
    say(world, "p", *map(str, range(1000)))
    world.run_until(1)
    assert 1120 < len(heard(world, "q")) < 1280


def test_reordering_lets_packets_overtake() -> None:
    world = echoes("p q")
    texts = [str(number).encode() for number in range(200)]
    say(world, "p", *(text.decode() for text in texts))
    world.run_until(1)
    assert heard(world, "q") == texts, "with one latency for all, nothing overtakes"

    world = during(echoes("p q"), Weather(at=0, until=LONG, what="reordering", rate=0.2))
    say(world, "p", *(text.decode() for text in texts))
    world.run_until(1)
    assert heard(world, "q") != texts
    assert sorted(heard(world, "q")) == sorted(texts)


def test_a_partition_cuts_both_ways_and_takes_what_is_on_the_way() -> None:
    world = echoes("p q r")
    say(world, "p", "on the way")
    during(world, Partition(at=0, until=LONG, sides=(("p",), ("q", "r"))))
    say(world, "p", "too late")
    say(world, "q", "among us")
    world.run_until(1)
    assert heard(world, "p") == []
    assert heard(world, "q") == []
    assert heard(world, "r") == [b"among us"]


def test_overlapping_sides_make_hearing_intransitive() -> None:
    world = during(echoes("p q r"), Partition(at=0, until=LONG, sides=(("p", "q"), ("q", "r"))))
    say(world, "p", "from p")
    say(world, "q", "from q")
    world.run_until(1)
    assert heard(world, "q") == [b"from p"]
    assert heard(world, "r") == [b"from q"]
    assert heard(world, "p") == [b"from q"]


def test_two_partitions_at_once_both_cut_until_both_are_over() -> None:
    world = echoes("p q")
    one, other = (Partition(at=0, until=LONG, sides=(("p",), ("q",))) for _ in range(2))
    world.begin(one)
    world.begin(other)
    world.end(one)
    say(world, "p", "still cut")
    world.run_until(0.1)
    world.end(other)
    say(world, "p", "whole again")
    world.run_until(0.2)
    assert heard(world, "q") == [b"whole again"]


def test_a_one_way_cut_lets_the_other_direction_through() -> None:
    world = during(echoes("p q"), OneWay(at=0, until=LONG, senders=("p",), receivers=("q",)))
    say(world, "p", "lost")
    say(world, "q", "arrives")
    world.run_until(1)
    assert heard(world, "q") == []
    assert heard(world, "p") == [b"arrives"]


def test_a_flapping_link_is_a_series_of_partitions() -> None:
    cuts = flapping((("p",), ("q",)), at=1.0, until=2.0, period=0.25)
    assert [cut.at for cut in cuts] == [1.0, 1.25, 1.5, 1.75]
    world = echoes("p q")
    world.schedule(cuts)
    for number in range(8):
        world.agenda.at(1.05 + number * 0.125, say, world, "p", str(number))
    world.run_until(3)
    assert heard(world, "q") == [b"1", b"3", b"5", b"7"]


def test_a_spike_delays_and_ends() -> None:
    world = echoes("p q r")
    spike = Spike(at=0, until=LONG, between=("p", "q"), delay=0.5)
    world.begin(spike)
    say(world, "p", "x")
    world.run_until(0.1)
    assert (heard(world, "q"), heard(world, "r")) == ([], [b"x"])
    world.run_until(0.6)
    assert heard(world, "q") == [b"x"]
    world.end(spike)
    assert all(link.delays == 0 for link in world.network.links.values())


def test_a_slow_receiver_takes_its_time_and_drops_what_its_buffer_cannot_hold() -> None:
    world = echoes("p q")
    slow = SlowReceiver(at=0, until=LONG, process="q", service=0.1, buffer=3)
    world.begin(slow)
    say(world, "p", *map(str, range(10)))
    world.run_until(0.2)
    assert heard(world, "q") == [b"0"]
    world.run_until(2)
    assert heard(world, "q") == [b"0", b"1", b"2"]
    assert world.counts["overflowed"] == 7

    world.end(slow)
    say(world, "p", "fast")
    world.run_until(2.01)
    assert heard(world, "q")[-1] == b"fast"


# Processes.


def test_a_paused_process_misses_nothing_that_its_buffer_holds() -> None:
    world = echoes("p q")
    pause = Pause(at=0, until=LONG, process="q")
    world.begin(pause)
    assert not world["q"].multicast(b"x", Service.BASIC), "it cannot be asked"
    say(world, "p", *map(str, range(300)))
    world.run_until(1)
    assert (heard(world, "q"), told(world, "q", "tick")) == ([], [])
    world.end(pause)
    assert len(heard(world, "q")) == 256
    assert world.counts["overflowed"] == 44
    assert len(told(world, "q", "tick")) == 1, "a timer that was due fires once, late"


def test_a_clock_may_be_off_and_may_run_fast() -> None:
    world = echoes("p q")
    world["q"].set_clock(offset=100.0, rate=2.0)
    world.run_until(1.0)
    (last,) = told(world, "q", "tick")[-1]
    assert last == pytest.approx(100.0 + 2.0, abs=0.2)
    assert 17 <= len(told(world, "q", "tick")) <= 20, "its timers run fast as well"
    assert 8 <= len(told(world, "p", "tick")) <= 10


def test_skew_is_a_fault_that_stays() -> None:
    world = echoes("p q")
    skew = Skew(at=0, until=1, process="p", offset=3.0, rate=1.5)
    world.begin(skew)
    world.end(skew)
    assert (world["p"].clock_offset, world["p"].clock_rate) == (3.0, 1.5)


def test_a_port_outside_answers_after_its_time() -> None:
    world = echoes("p q")
    world.run_until(0.112)
    assert told(world, "p", "answered") == [("p asked what time is it?",)]


def test_a_process_that_crashes_forgets_and_starts_again_with_the_next_incarnation() -> None:
    world = echoes("p q")
    crash = Crash(at=0, until=LONG, process="q")
    say(world, "p", "forced")
    world.run_until(0.1)
    world.begin(crash)
    say(world, "p", "to the dead")
    world.run_until(0.2)
    assert not world["q"].is_up
    world.end(crash)
    world.run_until(0.3)
    assert told(world, "q", "had") == [((b"forced",),)]
    router = world["q"].router
    assert router is not None
    assert router.incarnation == 2
    assert world.counts["to the dead"] == 1


def test_two_faults_that_want_a_process_down_must_both_end() -> None:
    world = echoes("p q")
    one, other = (Crash(at=0, until=LONG, process="q") for _ in range(2))
    world.begin(one)
    world.begin(other)
    world.end(one)
    assert not world["q"].is_up
    world.end(other)
    assert world["q"].is_up


def test_a_crash_can_come_before_every_single_order() -> None:
    """With n orders to go, exactly n are carried out: write, force, and what is told."""
    done = []
    for orders in range(4):
        world = echoes("p q")
        world.begin(Crash(at=0, until=LONG, process="q", orders=orders, keep=1.0))
        say(world, "p", "x")
        world.run_until(0.09)
        assert not world["q"].is_up
        wrote = len(list(Log(world["q"].disk.contents()))) - 1
        done.append((wrote, world.counts["forced writes"] - 2, len(heard(world, "q"))))
    assert done == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]


def test_a_crash_while_booting_leaves_no_life_in_the_trace() -> None:
    world = echoes("p q")
    world["q"].crash()
    world["q"].start()
    world["q"].crash()
    world["q"].start()
    world.run_until(0.2)
    lives = [(row.incarnation, row.kind) for row in world.rows if row.process == "q" and row.kind != "phase"]
    assert lives == [(1, "start"), (1, "crash"), (2, "start")]
    assert world.counts["crashes while booting"] == 1


def test_a_disk_that_fails_while_booting_leaves_no_life_in_the_trace() -> None:
    world = echoes("p q")
    world["q"].crash()
    world["q"].disk.failures.append("bad luck")
    world["q"].start()
    world.run_until(0.1)
    assert not world["q"].is_up
    world["q"].start()
    world.run_until(0.2)
    lives = [(row.incarnation, row.kind) for row in world.rows if row.process == "q"]
    assert lives[:2] == [(1, "start"), (1, "crash")]
    assert lives[2:] in ([(2, "start")], [(3, "start")]), "what a failed write said may be on the disk or not"
    assert world.counts["halts while booting"] == 1


def test_healing_ends_every_fault_starts_whoever_is_down_and_lets_none_begin() -> None:
    world = echoes("p q r")
    world.schedule((Crash(at=0.1, until=LONG, process="p"), Pause(at=0.1, until=LONG, process="q")))
    world.schedule((Partition(at=0.1, until=LONG, sides=(("p",), ("q", "r"))), Crash(at=0.5, until=LONG, process="r")))
    world.run_until(0.2)
    world.heal()
    world.run_until(1.0)
    assert all(process.is_running for process in world.processes.values())
    assert not any(link.cuts for link in world.network.links.values())
    assert world.active == []


# Disks.


def forced_disk(*frames: bytes) -> tuple[Disk, Agenda]:
    agenda = Agenda()
    disk = Disk(agenda, Random(1))
    for frame in frames:
        disk.write(frame)
    disk.force(lambda: None, lambda: None)
    agenda.step()
    return disk, agenda


@pytest.mark.parametrize(("keep", "left"), [(0.0, b"ab"), (0.5, b"abc"), (1.0, b"abcd")])
def test_a_crash_loses_a_suffix_of_what_was_not_forced_and_nothing_else(keep: float, left: bytes) -> None:
    disk, _ = forced_disk(b"a", b"b")
    disk.write(b"c")
    disk.write(b"d")
    disk.crash(keep, tear=False)
    assert disk.contents() == left


def test_a_crash_may_tear_the_next_record_and_whoever_reopens_cuts_it_off() -> None:
    disk, _ = forced_disk(b"whole")
    disk.write(b"x" * 100)
    disk.crash(0.0, tear=True)
    torn = disk.contents().removeprefix(b"whole")
    assert 0 < len(torn) < 100
    disk.cut(len(b"whole"))
    assert disk.contents() == b"whole"


def test_a_forced_write_under_way_at_a_crash_is_never_reported() -> None:
    agenda, done = Agenda(), list[str]()
    disk = Disk(agenda, Random(1))
    disk.write(b"a")
    disk.force(lambda: done.append("done"), lambda: done.append("failed"))
    disk.crash(0.0, tear=False)
    agenda.step()
    assert (done, disk.contents()) == ([], b"")


def test_a_full_disk_refuses_and_a_failing_one_fails_once() -> None:
    disk, agenda = forced_disk()
    done: list[str] = []
    disk.full_for = 1
    with pytest.raises(DiskError, match="no space left"):
        disk.write(b"a")
    disk.full_for = 0
    disk.failures.append("bad luck")
    for _ in range(2):
        disk.force(lambda: done.append("done"), lambda: done.append("failed"))
        agenda.step()
    assert done == ["failed", "done"]


@pytest.mark.parametrize(
    "fault",
    [FullDisk(at=0, until=LONG, process="q"), FailingDisk(at=0, until=LONG, process="q")],
    ids=["full", "failing"],
)
def test_a_node_whose_disk_fails_halts_and_starts_again_when_it_can(fault: AnyFault) -> None:
    world = echoes("p q")
    world.begin(fault)
    say(world, "p", "x")
    world.run_until(0.1)
    assert not world["q"].is_up
    assert told(world, "q", "durable") == [], "never acknowledged"
    assert [row.kind for row in world.rows if row.process == "q"][-1] == "halt"
    world.end(fault)
    world.run_until(0.2)
    assert world["q"].is_running


def test_a_slow_disk_is_slow() -> None:
    world = echoes("p q")
    slow = SlowDisk(at=0, until=LONG, process="q", factor=1000)
    world.begin(slow)
    say(world, "p", "x")
    world.run_until(0.2)
    assert heard(world, "q") == [b"x"]
    assert told(world, "q", "durable") == []
    world.end(slow)
    assert world["q"].disk.slowness == 1.0
    world.run_until(3)
    assert told(world, "q", "durable") == [(1,)]


def test_a_forced_write_does_not_cover_what_came_after_it() -> None:
    agenda = Agenda()
    disk = Disk(agenda, Random(1))
    disk.write(b"a")
    disk.force(lambda: None, lambda: None)
    disk.write(b"b")
    agenda.step()
    disk.crash(0.0, tear=False)
    assert disk.contents() == b"a"


def test_a_full_disk_cannot_force_either() -> None:
    agenda, done = Agenda(), list[str]()
    disk = Disk(agenda, Random(1))
    disk.write(b"a")
    disk.full_for = 1
    disk.force(lambda: done.append("done"), lambda: done.append("failed"))
    agenda.step()
    assert done == ["failed"]


def test_what_survived_a_crash_survives_the_next_one() -> None:
    disk = Disk(Agenda(), Random(1))
    disk.write(b"a")
    disk.crash(1.0, tear=False)
    disk.crash(0.0, tear=False)
    assert disk.contents() == b"a"


def test_a_torn_log_is_cut_and_goes_on_through_another_crash() -> None:
    world = echoes("p q")
    say(world, "p", "torn")
    world.run_until(0.0511)
    world["q"].crash(keep=0.0, tear=True)
    for _ in range(2):
        world["q"].start()
        world.run_until(world.agenda.now + 0.1)
        say(world, "p", "whole")
        world.run_until(world.agenda.now + 0.1)
        world["q"].crash()
    world["q"].start()
    world.run_until(world.agenda.now + 0.1)
    assert told(world, "q", "had") == [((b"whole", b"whole"),)]


def test_what_one_life_asked_for_does_not_reach_the_next() -> None:
    """A timer, a forced write and packets in the inbox die with the life that they were for."""
    world = echoes("p q")
    world.begin(SlowReceiver(at=0, until=LONG, process="q", service=0.05, buffer=10))
    say(world, "p", "one", "two")
    world.run_until(0.06)
    world["q"].crash()
    world["q"].start()
    world.run_until(0.16)
    assert heard(world, "q") == []
    world.run_until(0.3)
    assert len(told(world, "q", "tick")) == 2, "only its own timer fires, counted from its own start"


def test_faults_of_one_kind_on_one_process_overlap_and_end_one_by_one() -> None:
    world = echoes("p q")
    slow, slower = (SlowReceiver(at=0, until=LONG, process="q", service=each, buffer=9) for each in (0.1, 0.5))
    world.begin(slow)
    world.begin(slower)
    world.end(slower)
    say(world, "p", "x")
    world.run_until(0.1)
    assert heard(world, "q") == [], "still slow"
    world.run_until(0.2)
    assert heard(world, "q") == [b"x"]

    first, second = (Crash(at=0, until=LONG, process="p", orders=orders) for orders in (500, 600))
    world.begin(first)
    world.begin(second)
    world.end(second)
    assert len(world["p"].fuses) == 1

    once, again = (FailingDisk(at=0, until=LONG, process="q") for _ in range(2))
    world.begin(once)
    world.begin(again)
    world.end(once)
    assert world["q"].disk.failures == [again]


def test_nobody_starts_before_the_last_fault_is_over() -> None:
    world = echoes("p q")
    world.begin(FailingDisk(at=0, until=LONG, process="q"))
    world.begin(Crash(at=0, until=LONG, process="q"))
    world.heal()
    world.run_until(1.0)
    assert world["q"].is_running
    assert world.counts["halts while booting"] == 0


def test_a_node_that_halts_after_healing_starts_again() -> None:
    world = echoes("p q")
    world.begin(SlowDisk(at=0, until=LONG, process="q", factor=200))
    world.begin(FailingDisk(at=0, until=LONG, process="q"))
    say(world, "p", "x")
    world.run_until(0.06)
    world.heal()
    world.run_until(2.0)
    assert [row.kind for row in world.rows if row.process == "q"] == ["start", "halt", "start"]
    assert world["q"].is_running


def test_a_run_is_not_quiet_while_a_forced_write_is_under_way() -> None:
    world = echoes("p q")
    world["q"].disk.slowness = 1000.0
    say(world, "p", "x")
    assert world.run_until_quiet(0.05, deadline=10.0, most_steps=10_000)
    assert told(world, "q", "durable") == [(1,)]


def test_links_keep_their_order_unless_they_reorder() -> None:
    world = echoes("p q", latency=Latency("heavy", 0.001, 0.01))
    texts = [str(number) for number in range(300)]
    for number, text in enumerate(texts):
        world.agenda.at(0.06 + number * 0.0001, say, world, "p", text)
    world.run_until(5)
    assert [text.decode() for text in heard(world, "q")] == texts


def test_sites_may_be_unevenly_far_apart_and_alike_in_both_directions() -> None:
    links = echoes("p q r", latency=Latency("constant", 0.001, unevenness=10)).network.links
    assert len({link.latency.floor_s for link in links.values()}) == 3
    assert links["p", "q"].latency == links["q", "p"].latency


def test_the_digest_of_a_run_covers_what_was_sent_and_what_was_written() -> None:
    world = echoes("p q")
    before = world.digest
    say(world, "p", "x")
    sent = world.digest
    assert sent != before
    world.run_until(0.0511)
    assert world.digest != sent, "q wrote it down"


def test_the_rows_of_every_life_and_of_the_world_are_numbered() -> None:
    board = Cluster("p q", subject=replace(NOTICEBOARD, rules=("evs",))).settle()
    board.partition("p | q").crash("q").wait(1.0).restart("q").heal().settle()
    assert "evs/0_1_rows_are_numbered" not in {each.rule for each in board.broken_rules()}
