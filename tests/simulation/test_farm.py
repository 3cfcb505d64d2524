"""The farm: many runs on several processes, with the traces that they leave."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from greenline.simulation.farm import BATCH, HASH_SEED, Batch, Farm, Judging, WorkerFailed, batches
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import play
from greenline.simulation.shrink import shrink
from greenline.simulation.subjects import NOTICEBOARD
from greenline.trace.order import told


def plans(count: int) -> list[Plan]:
    return [draw_plan(NOTICEBOARD, seed, 3, "lossy") for seed in range(count)]


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
