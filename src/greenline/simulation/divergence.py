"""Divergence: two processes that play one plan must leave one trace. Where they do not, chance has leaked in."""

from __future__ import annotations

from collections.abc import Sequence

from greenline.kernel.evidence import WORLD
from greenline.simulation.farm import Batch, Farm, Report
from greenline.simulation.plan import Plan
from greenline.spec.judge import Broken
from greenline.trace.story import tell

RULE = "kernel/same_seed_same_trace"


def compare(reports: Sequence[Report]) -> Broken | None:
    """The first place where the traces of one plan differ, as a broken rule; None if they are the same."""
    first = reports[0]
    for other in reports[1:]:
        if other.trace_hash != first.trace_hash:
            return _explained(first, other)
    return None


def diverges(farm: Farm, plan: Plan) -> Broken | None:
    """Play the plan in every worker, each with another hash seed."""
    return compare([reports[0] for reports in farm.everywhere(Batch((plan,), keep_rows=True, with_packets=True))])


def _explained(one: Report, other: Report) -> Broken:
    at = next(
        (place for place, (a, b) in enumerate(zip(one.rows, other.rows, strict=False)) if a != b),
        min(len(one.rows), len(other.rows)),
    )
    because = (
        f"in one process {_words(one, at)!r} came first, in another, with another hash seed, {_words(other, at)!r}"
    )
    return Broken(RULE, one.plan.run, because, {"row": at})


def _words(report: Report, at: int) -> str:
    if at >= len(report.rows):
        return "the end"
    (line,) = tell([report.rows[at]], everything=True)
    return line.text if line.process == WORLD else f"{line.process} {line.text}"
