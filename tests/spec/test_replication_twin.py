"""The rules of replication in SQL and their plain twin agree: on every small execution, good or corrupted."""

from __future__ import annotations

from collections import Counter

import pytest

from greenline.spec import replication_twin as twin
from greenline.spec.judge import Judge, by_run, rules_in
from greenline.trace.tables import to_table
from tests.spec.small_replication import corrupted, small_execution


def rules_broken(seeds: range) -> Counter[str]:
    """How often each rule was, by both; half of the executions have mistakes in them, and only those break any."""
    good = {f"good {seed}": small_execution(seed) for seed in seeds}
    bad = {f"bad {seed}": corrupted(good[f"good {seed}"], seed) for seed in seeds}
    runs = good | bad
    found = by_run(Judge(("replication",), threads=2).broken(to_table(runs.items())))
    seen: Counter[str] = Counter()
    for run, rows in runs.items():
        rules = {each.rule for each in found.get(run, [])}
        assert rules == twin.broken(rows), run
        assert not rules or run.startswith("bad"), run
        seen.update(rules)
    return seen


def test_rules_and_twin_agree_on_some_small_executions() -> None:
    assert len(rules_broken(range(100))) > 20


@pytest.mark.slow
def test_rules_and_twin_agree_on_two_thousand_small_executions() -> None:
    seen: Counter[str] = Counter()
    for begin in range(100, 1100, 500):
        seen += rules_broken(range(begin, begin + 500))
    assert set(seen) == {rule.name for rule in rules_in("replication")}, "every rule was broken by some mistake"
