"""The catalogue of the Ring: every scenario under its id, played by the right protocol, and judged.

The stories themselves are in `greenline.simulation.scenarios`, where seeded bugs are tried on them as well.
"""

from __future__ import annotations

import pytest

from greenline.simulation.scenarios.ring import SCENARIOS
from greenline.simulation.scenarios.stage import Scenario, Stage

QUICK = {"RING-01", "RING-05", "RING-17", "RING-24", "RING-29", "EVS-00", "EVS-08", "EVS-11", "PACK-02"}
"""Those that are played in the fast loop as well."""


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, each in SCENARIOS.items()
    ],
)
def test_the_scenario_ends_as_its_claim_says(scenario: Scenario) -> None:
    stage = Stage()
    scenario.play(stage)
    assert stage.broken_rules() == []


def test_the_catalogue_is_complete() -> None:
    """RING-40 has a test file of its own: it is some hundred scenarios. RING-45 and 46 came from real ones."""
    wanted = {f"RING-{n:02}" for n in range(1, 47) if n != 40} | {f"EVS-{n:02}" for n in range(23)}
    wanted |= {f"PACK-{n:02}" for n in range(1, 7)}
    assert set(SCENARIOS) == wanted
    assert all(scenario.claim for scenario in SCENARIOS.values())
