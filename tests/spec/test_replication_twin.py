"""The rules of replication and of access in SQL agree with their plain twins: on every small execution, good or bad."""

from __future__ import annotations

from collections import Counter

import pytest

from greenline.spec import access_twin, replication_twin
from greenline.spec.judge import Judge, by_run, rules_in
from greenline.trace.tables import to_table
from tests.spec.small_replication import corrupted, small_execution

FOLDERS = ("replication", "access")


def rules_broken(seeds: range) -> Counter[str]:
    """How often each rule was, by both; half of the executions have mistakes in them, and only those break any."""
    good = {f"good {seed}": small_execution(seed) for seed in seeds}
    bad = {f"bad {seed}": corrupted(good[f"good {seed}"], seed) for seed in seeds}
    runs = good | bad
    found = by_run(Judge(FOLDERS, threads=2).broken(to_table(runs.items())))
    seen: Counter[str] = Counter()
    for run, rows in runs.items():
        rules = {each.rule for each in found.get(run, [])}
        assert rules == replication_twin.broken(rows) | access_twin.broken(rows), run
        assert not rules or run.startswith("bad"), run
        seen.update(rules)
    return seen


def test_rules_and_twins_agree_on_some_small_executions() -> None:
    assert len(rules_broken(range(100))) > 30


@pytest.mark.slow
def test_rules_and_twins_agree_on_two_thousand_small_executions() -> None:
    seen: Counter[str] = Counter()
    for begin in range(100, 1100, 500):
        seen += rules_broken(range(begin, begin + 500))
    known = {rule.name for folder in FOLDERS for rule in rules_in(folder)}
    assert set(seen) == known, "every rule was broken by some mistake"
