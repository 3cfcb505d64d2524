"""All scenarios of the replication engine, by id.

REPL-32, 33, 41 to 51, 54, 57 to 59, 61 to 64 and 68 wait for sessions, for servers that come and go, for SQL, and for
the protocols that the engine is compared with; REPL-67 is what storms are.
"""

from __future__ import annotations

from greenline.simulation.scenarios import (
    replication_admission,
    replication_clients,
    replication_components,
    replication_durability,
    replication_exchange,
    replication_vulnerable,
)
from greenline.simulation.scenarios.stage import Scenario

SCENARIOS: dict[str, Scenario] = {
    **replication_clients.SCENARIOS,
    **replication_components.SCENARIOS,
    **replication_vulnerable.SCENARIOS,
    **replication_exchange.SCENARIOS,
    **replication_durability.SCENARIOS,
    **replication_admission.SCENARIOS,
}
