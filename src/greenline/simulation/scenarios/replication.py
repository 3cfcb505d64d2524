"""All scenarios of the replication engine, by id.

REPL-54 and 64 wait for SQL, 61, 62 and 68 for the protocols that the engine is compared with. REPL-67 is what storms
are; from 69 on they are ours.
"""

from __future__ import annotations

from greenline.simulation.scenarios import (
    replication_admission,
    replication_clients,
    replication_components,
    replication_durability,
    replication_exchange,
    replication_joining,
    replication_lingering,
    replication_members,
    replication_semantics,
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
    **replication_joining.SCENARIOS,
    **replication_members.SCENARIOS,
    **replication_semantics.SCENARIOS,
    **replication_lingering.SCENARIOS,
}
