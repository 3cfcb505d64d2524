"""The farm: many runs on several processes, with the traces that they leave."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from greenline.kernel.ports import Service
from greenline.simulation.farm import BATCH, HASH_SEED, Batch, Farm, Judging, WorkerFailed, batches
from greenline.simulation.faults import Ambush, Crash, Partition
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import play
from greenline.simulation.requests import Request
from greenline.simulation.shrink import RIGHT_AFTER_S, shrink
from greenline.simulation.subjects import NOTICEBOARD
from greenline.trace.order import told

BAIT = Partition(at=0.0, until=1.0, sides=(("p",), ("q", "r", "s", "t")))


def plans(count: int) -> list[Plan]:
    return [draw_plan(NOTICEBOARD, seed, 3, "lossy") for seed in range(count)]


@pytest.mark.slow
def test_every_run_is_reported_once_and_leaves_its_trace(tmp_path: Path) -> None:
    wanted = plans(BATCH + 3)
    with Farm(2) as farm:
        reports = [report for each in farm.each(batches(wanted, tmp_path)) for report in each]
    assert sorted(report.plan.seed for report in reports) == [plan.seed for plan in wanted]
    assert {path.suffix for path in tmp_path.iterdir()} == {".parquet"}
    run, rows = told(tmp_path, wanted[7].run)
    assert run == wanted[7].run
    assert rows == play(wanted[7]).rows


def test_a_farm_leaves_the_environment_as_it_was() -> None:
    before = os.environ.get(HASH_SEED)
    with Farm(1):
        pass
    assert os.environ.get(HASH_SEED) == before


def test_what_goes_wrong_in_a_worker_is_told() -> None:
    nobody = msgspec.structs.replace(plans(1)[0], core="nobody")
    with Farm(1) as farm, pytest.raises(WorkerFailed, match="KeyError: 'nobody'"):
        list(farm.each([Batch((nobody,))]))


def test_a_run_that_never_calms_down_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no patience at all, the best protocol is not quiet in time."""
    impatient = msgspec.structs.replace(plans(1)[0], most_steps=0)
    (report,) = Judging().reports(Batch((impatient,)))
    assert report.end == "stuck"
    assert report.broken == [], "not yet is not never: no rule is broken by a run that goes on"


def test_shrinking_finds_the_two_things_that_matter() -> None:
    plan = draw_plan(NOTICEBOARD, 4, 5, "storm")
    culprit, request = plan.schedule[3], plan.requests[2]

    def fails(candidate: Plan) -> bool:
        return culprit in candidate.schedule and request in candidate.requests

    short = shrink(plan, fails)
    assert short.schedule == (culprit,)
    assert short.requests == (request,)
    assert len(short.names) >= 2


def test_every_worker_hashes_names_in_its_own_way() -> None:
    """Otherwise a protocol that iterates over a set would look the same everywhere."""
    with Farm(2) as farm:
        one, other = farm.everywhere(Batch((plans(1)[0],)))
    assert one[0].hash_of_a_name != other[0].hash_of_a_name


def test_shrinking_makes_what_is_left_plainer() -> None:
    plan = draw_plan(NOTICEBOARD, 4, 5, "storm")
    crash = Crash(at=1.0, until=2.0, process="p", orders=7, keep=0.5, tear=True)
    plan = msgspec.structs.replace(plan, schedule=(crash,), requests=(Request(0.5, "p", "x", Service.BASIC),))

    def fails(candidate: Plan) -> bool:
        return len(candidate.schedule) == len(candidate.requests) == 1

    (left,) = shrink(plan, fails).schedule
    assert left == Crash(at=1.0, until=2.0, process="p").moved_to(0.5 + RIGHT_AFTER_S)
    ambush = Ambush(at=1.0, until=1.0, delay=0.1, patience=1.0, bait=BAIT, fault=Crash(at=0.0, until=0.5, process="q"))
    (left,) = shrink(msgspec.structs.replace(plan, schedule=(ambush,)), fails).schedule
    assert isinstance(left, Crash), "a plain crash in place of an ambush"


def test_shrinking_ends() -> None:
    plays = 0

    def fails(candidate: Plan) -> bool:
        nonlocal plays
        plays += 1
        return False

    shrink(draw_plan(NOTICEBOARD, 4, 5, "storm"), fails, most_plays=10)
    assert plays == 10
