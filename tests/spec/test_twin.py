"""The rules in SQL and their plain twin agree: on every rule of every small execution, good or corrupted."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from greenline.spec import twin
from greenline.spec.judge import Judge, by_run, rules_in
from greenline.trace.tables import to_table
from tests.spec.small import corrupted, small_execution

SEEDS = int(os.environ.get("TWIN_SEEDS", "600"))
"""Each gives a good execution and a bad one; CI tries as many as make ten thousand."""


@pytest.mark.slow
def test_rules_and_twin_agree_on_thousands_of_small_executions() -> None:
    """Half of them as the adversary made them, half with mistakes in them. Not 99 %: all."""
    judge = Judge(("evs",), threads=2)
    seen: Counter[str] = Counter()
    for begin in range(0, SEEDS, 1000):
        good = {f"good {seed}": small_execution(seed) for seed in range(begin, begin + 1000)}
        bad = {f"bad {run}": corrupted(rows, begin + n) for n, (run, rows) in enumerate(good.items())}
        runs = good | bad
        found = by_run(judge.broken(to_table(runs.items())))
        for run, rows in runs.items():
            rules = {each.rule for each in found.get(run, [])}
            assert rules == twin.broken(rows), run
            assert not rules or run.startswith("bad"), run
            seen.update(rules)
    assert set(seen) == {rule.name for rule in rules_in("evs")}, "every rule was broken by some mistake"
