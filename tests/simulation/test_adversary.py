"""The adversary plays legal executions only, and the rare ones among them often enough."""

from __future__ import annotations

from collections import Counter

import pytest

from greenline.simulation.farm import Batch, Judging
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import End
from greenline.simulation.subjects import ADVERSARY

RARE = (
    "case 1: safe in the regular configuration",
    "case ?: safe in a transitional configuration",
    "case 0: safe and not delivered in a component",
    "configurations that not all members install",
    "deliveries in regular configurations",
    "deliveries in transitional configurations",
    "partitions",
    "merges",
    "crash",
    "deliveries out of turn",
    "generated in one configuration, sent in another",
)


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "profile"), [(2, "calm"), (3, "calm"), (5, "calm"), (8, "calm"), (4, "storm")])
def test_its_executions_break_no_rule_and_cover_what_is_rare(nodes: int, profile: str) -> None:
    reports = Judging().reports(Batch(tuple(draw_plan(ADVERSARY, seed, nodes, profile) for seed in range(60))))
    seen: Counter[str] = Counter()
    for report in reports:
        assert report.broken == [], report.plan.run
        assert report.end is End.QUIET, report.plan.run
        seen.update(report.counts.keys())
    assert all(seen[what] for what in RARE), seen
