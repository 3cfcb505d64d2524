"""All scenarios of access, by id: ACC- of the notes. Those that are here are about sessions, which the engine keeps."""

from __future__ import annotations

from greenline.simulation.scenarios import access_sessions
from greenline.simulation.scenarios.stage import Scenario

SCENARIOS: dict[str, Scenario] = {**access_sessions.SCENARIOS}
