"""The catalogue of the engine: every scenario under its id, played by the right protocol, and judged.

The stories themselves are in `greenline.simulation.scenarios`, where seeded bugs are tried on them as well. All that
are asked for are judged together, as that takes hardly longer than to judge one.
"""

from __future__ import annotations

import pytest

from greenline.simulation.cluster import Stuck
from greenline.simulation.mutants.engine import MUTANTS
from greenline.simulation.scenarios import access, replication
from greenline.simulation.scenarios.stage import Scenario, Stage, judged_together, what_goes_wrong_in
from greenline.spec.judge import Broken

SCENARIOS = {**replication.SCENARIOS, **access.SCENARIOS}

Ending = AssertionError | list[Broken]
"""The claim that is not kept, or the rules that are broken."""

QUICK = {
    *("REPL-01", "REPL-05", "REPL-08", "REPL-10", "REPL-12", "REPL-16", "REPL-22", "REPL-35", "REPL-69", "REPL-71"),
    *("REPL-43", "REPL-44", "REPL-47", "REPL-51", "REPL-58", "REPL-63", "ACC-05", "ACC-06"),
}
"""Those that are played in the fast loop as well."""


@pytest.fixture(scope="module")
def endings(request: pytest.FixtureRequest) -> dict[str, Ending]:
    """How each scenario ends that this run asks for."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [spec.params["scenario"] for spec in asked if spec and "scenario" in spec.params]
    ends: dict[str, Ending] = {}
    stages: dict[str, Stage] = {}
    for scenario in chosen:
        if scenario.name in SCENARIOS:
            stage = Stage()
            try:
                scenario.play(stage)
                stages[scenario.name] = stage
            except (AssertionError, Stuck) as error:
                ends[scenario.name] = error
    ends.update(zip(stages, judged_together(list(stages.values())), strict=True))
    return ends


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, each in SCENARIOS.items()
    ],
)
def test_the_scenario_ends_as_its_claim_says(scenario: Scenario, endings: dict[str, Ending]) -> None:
    ending = endings[scenario.name]
    if isinstance(ending, AssertionError):
        raise ending
    assert ending == []


@pytest.fixture(scope="module")
def catches(request: pytest.FixtureRequest) -> dict[str, str | None]:
    """What goes wrong with each seeded bug that this run asks for, in its scenario."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    names = [spec.params["bug"] for spec in asked if spec and "bug" in spec.params]
    played = [(SCENARIOS[str(MUTANTS[name].scenario)], name) for name in names]
    return dict(zip(names, what_goes_wrong_in(played), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("bug", [name for name, each in MUTANTS.items() if each.scenario])
def test_the_scenario_catches_the_bug_and_not_by_a_crash_of_the_mutant(
    bug: str, catches: dict[str, str | None]
) -> None:
    by = catches[bug]
    assert by is not None
    assert not by.startswith("run/")


def test_the_catalogue_is_complete() -> None:
    """What is left out waits for SQL, for other protocols, and for clients of a group that is open."""
    replicas = {*range(1, 54), *range(55, 61), 63, 65, 66, *range(69, 105)}
    sessions = {5, 6, 8, 10, 13, 14, 15, 22, 28, *range(85, 90)}
    assert set(replication.SCENARIOS) == {f"REPL-{number:02}" for number in replicas}
    assert set(access.SCENARIOS) == {f"ACC-{number:02}" for number in sessions}
    assert all(scenario.claim for scenario in SCENARIOS.values())
