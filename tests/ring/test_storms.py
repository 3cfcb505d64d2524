"""A few storms of each kind of Ring; `make soak` runs them without end."""

from __future__ import annotations

import pytest

from greenline.simulation.farm import Batch, Judging
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import End
from greenline.simulation.subjects import RING, RING_MULTICAST, Subject


@pytest.mark.slow
@pytest.mark.parametrize("subject", [RING, RING_MULTICAST], ids=lambda subject: subject.name)
@pytest.mark.parametrize(("nodes", "seeds"), [(3, range(25)), (5, range(15)), (8, range(3))])
def test_storms_break_no_rule_and_end_in_one_configuration(subject: Subject, nodes: int, seeds: range) -> None:
    plans = tuple(draw_plan(subject, seed, nodes, "storm") for seed in seeds)
    reports = Judging().reports(Batch(plans))
    assert {report.plan.seed: report.broken for report in reports if report.broken} == {}
    assert all(report.end is End.QUIET for report in reports)
