"""A run is fully decided by its seed: bit for bit, in another process and under another hash seed."""

from __future__ import annotations

import pytest

from greenline.simulation.farm import Batch, Farm
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import play
from greenline.simulation.subjects import NOTICEBOARD

SEEDS = range(50)


@pytest.mark.slow
def test_50_storms_leave_the_same_trace_in_two_processes_with_different_hash_seeds() -> None:
    plans = tuple(draw_plan(NOTICEBOARD, seed, 5, "storm") for seed in SEEDS)
    with Farm(2) as farm:
        one, other = farm.everywhere(Batch(plans))
    hashes = [report.trace_hash for report in one]
    assert hashes == [report.trace_hash for report in other]
    assert len(set(hashes)) == len(hashes), "and different seeds leave different ones"


def test_the_same_plan_played_twice_in_one_process_leaves_the_same_trace() -> None:
    plan = draw_plan(NOTICEBOARD, 3, 5, "storm")
    first, second = play(plan), play(plan)
    assert first.rows == second.rows
    assert first.trace_hash == second.trace_hash


def test_every_choice_of_a_run_comes_from_its_seed() -> None:
    assert draw_plan(NOTICEBOARD, 1, 5, "storm") == draw_plan(NOTICEBOARD, 1, 5, "storm")
    assert draw_plan(NOTICEBOARD, 1, 5, "storm") != draw_plan(NOTICEBOARD, 2, 5, "storm")


def test_the_hash_covers_what_was_sent_and_not_only_what_was_delivered() -> None:
    """A packet more or less is another run, also where it changes no delivery."""
    plan = draw_plan(NOTICEBOARD, 1, 3, "calm")
    quiet = play(plan).rows[-1]
    assert quiet.kind == "quiet"
    assert quiet.digest is not None
    assert int(quiet.digest, 16) != 0
