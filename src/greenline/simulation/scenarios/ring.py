"""All scenarios of the Ring, by id."""

from __future__ import annotations

from greenline.simulation.scenarios import ring_membership, ring_ordering, ring_recovery
from greenline.simulation.scenarios.stage import Scenario

SCENARIOS: dict[str, Scenario] = {
    **ring_ordering.SCENARIOS,
    **ring_membership.SCENARIOS,
    **ring_recovery.SCENARIOS,
}
