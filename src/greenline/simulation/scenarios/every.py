"""Every scenario of every protocol, by id: where a seeded bug finds the one that catches it."""

from __future__ import annotations

from greenline.simulation.scenarios import access, replication, ring
from greenline.simulation.scenarios.stage import Scenario

SCENARIOS: dict[str, Scenario] = {**ring.SCENARIOS, **replication.SCENARIOS, **access.SCENARIOS}
