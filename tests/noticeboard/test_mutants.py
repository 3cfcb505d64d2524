"""Seeded bugs: each is caught by a rule, replayed, made short, and its story explains it."""

from __future__ import annotations

import pytest

from greenline.simulation.divergence import RULE as DIVERGED
from greenline.simulation.divergence import diverges
from greenline.simulation.failure import made_short
from greenline.simulation.farm import Batch, Farm, Judging
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.subjects import NOTICEBOARD
from greenline.trace.story import tell

pytestmark = pytest.mark.slow
HANDFUL = 5


def caught(mutant: str, rule: str) -> Plan:
    """The first storm that catches it by this rule."""
    judging = Judging()
    for seed in range(100):
        plan = draw_plan(NOTICEBOARD, seed, 5, "storm", mutant=mutant)
        (report,) = judging.reports(Batch((plan,)))
        if any(each.rule == rule for each in report.broken):
            return plan
    raise AssertionError(f"no storm caught {mutant}")


@pytest.mark.parametrize(
    ("mutant", "rule", "told"),
    [
        ("delivers-before-its-barrier", "noticeboard/4_nothing_read_is_forgotten", "starts its life 2"),
        ("forgets-its-incarnation", "noticeboard/5_everyone_reads_everything", "starts its life 2"),
    ],
)
def test_a_wrong_protocol_is_caught_replayed_made_short_and_explained(mutant: str, rule: str, told: str) -> None:
    plan = caught(mutant, rule)
    (again,) = Judging().reports(Batch((plan,)))
    assert rule in {each.rule for each in again.broken}, "the seed fails again"

    report = made_short(plan, rule)
    short = report.plan

    assert len(short.schedule) + len(short.requests) <= HANDFUL
    assert len(short.names) == 2
    story = "\n".join(map(str, tell(report.rows)))
    assert told in story
    witness = next(each for each in report.broken if each.rule == rule).witness
    assert str(witness["message"]) in story, "the message that was lost is on the page"


def test_a_protocol_that_iterates_over_a_set_differs_from_itself_in_another_process() -> None:
    plan = draw_plan(NOTICEBOARD, 0, 5, "storm", mutant="iterates-over-a-set")

    report = made_short(plan, DIVERGED)
    short = report.plan

    assert len(short.schedule) + len(short.requests) <= HANDFUL
    (broken,) = report.broken
    assert broken.rule == DIVERGED
    assert "with another hash seed" in broken.because
    assert broken.because.count("Notice author=") == 2, "it names the two packets that changed places"


def test_the_right_protocol_is_the_same_in_every_process() -> None:
    with Farm(2) as farm:
        for seed in range(10):
            assert diverges(farm, draw_plan(NOTICEBOARD, seed, 5, "storm")) is None
