"""Seeded bugs: those that storms hardly meet are caught by their scenarios; of the others a few are tried here.

All of them are tried by `greenline simulate ring --mutants`, which is too long for this place.
"""

from __future__ import annotations

import pytest

from greenline.simulation.farm import Batch, Judging
from greenline.simulation.mutants.ring import MUTANTS
from greenline.simulation.plan import draw_plan
from greenline.simulation.play import End
from greenline.simulation.scenarios.ring import SCENARIOS
from greenline.simulation.scenarios.stage import what_goes_wrong
from greenline.simulation.subjects import RING

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.scenario])
def test_the_scenario_catches_the_bug_and_not_by_a_crash_of_the_mutant(name: str) -> None:
    """That the right protocol passes it is what `test_scenarios` shows."""
    scenario = MUTANTS[name].scenario
    assert scenario is not None
    by = what_goes_wrong(SCENARIOS[scenario], name)
    assert by is not None
    assert not by.startswith("run/")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("packs-anew-when-it-repeats", "evs/4_failure_atomicity"),
        ("configuration-counter-not-stable", "evs/vs_03_counters_rise"),
        ("transitional-by-names", "evs/vs_06_transitional_members"),
        ("recovery-begins-at-its-own-number", "stuck"),
    ],
)
def test_a_storm_catches_the_bug_by_the_rule_that_it_breaks(name: str, rule: str) -> None:
    judging = Judging()
    for seed in range(12):
        (report,) = judging.reports(Batch((draw_plan(RING, seed, 5, "storm", mutant=name),)))
        found = {each.rule for each in report.broken} | ({"stuck"} if report.end is End.STUCK else set())
        if rule in found:
            return
    pytest.fail(f"no storm caught {name} by {rule}")


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(MUTANTS) >= 25
    assert len({mutant.mistake for mutant in MUTANTS.values()}) == len(MUTANTS)
    assert {mutant.scenario for mutant in MUTANTS.values()} - {None} <= set(SCENARIOS)
