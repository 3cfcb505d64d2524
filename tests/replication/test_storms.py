"""A few storms over each provider of the port; `make soak CORE=engine` runs them without end."""

from __future__ import annotations

import pytest

from greenline.simulation.farm import Batch, Judging
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import End, play
from greenline.simulation.subjects import ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING, Subject

OVER = pytest.mark.parametrize("subject", [ENGINE_OVER_ADVERSARY, ENGINE_OVER_RING], ids=lambda subject: subject.over)


@pytest.mark.slow
@OVER
def test_storms_break_no_rule_and_end_with_equal_databases(subject: Subject) -> None:
    """That the databases are equal, and nothing is left red, is one of the rules."""
    plans = tuple(
        draw_plan(subject, seed, nodes, "storm") for nodes, seeds in ((3, 3), (5, 3)) for seed in range(seeds)
    )
    reports = Judging().reports(Batch(plans))
    assert {report.plan.run: report.broken for report in reports if report.broken} == {}
    assert all(report.end is End.QUIET for report in reports)


@OVER
def test_a_storm_is_the_same_when_it_is_played_again(subject: Subject) -> None:
    plan = draw_plan(subject, 2, 3, "storm")
    assert play(plan).trace_hash == play(plan).trace_hash
