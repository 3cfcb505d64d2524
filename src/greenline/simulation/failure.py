"""A failing run made short: the same rule broken (or as stuck, or as divergent) by as little as possible."""

from __future__ import annotations

from collections.abc import Callable

from greenline.simulation import divergence
from greenline.simulation.farm import Batch, Farm, Judging, Report
from greenline.simulation.plan import Plan
from greenline.simulation.play import End
from greenline.simulation.shrink import shrink


def made_short(plan: Plan, rule: str | None, tick: Callable[[], None] = lambda: None) -> Report:
    """The shortest plan that breaks the rule, or with no rule the shortest that is stuck, and what it comes to.

    `tick` is called for every candidate that is played.
    """
    if rule == divergence.RULE:
        return _made_short_divergence(plan, tick)
    judging = Judging()

    def fails(candidate: Plan) -> bool:
        tick()
        (report,) = judging.reports(Batch((candidate,)))
        if rule is None:
            return report.end is End.STUCK
        return any(each.rule == rule for each in report.broken)

    (report,) = judging.reports(Batch((shrink(plan, fails),), keep_rows=True))
    return report


def _made_short_divergence(plan: Plan, tick: Callable[[], None]) -> Report:
    def fails(candidate: Plan) -> bool:
        tick()
        return divergence.diverges(farm, candidate) is not None

    with Farm(2) as farm:
        short = shrink(plan, fails)
        found = divergence.diverges(farm, short)
        report = farm.everywhere(Batch((short,), keep_rows=True))[0][0]
    assert found is not None, "a shrunk plan still fails"
    report.broken.append(found)
    return report
