"""RING-40: each processor crashes at each event that befalls it while two rings become one.

The merge is played once to see what comes to whom in which phase; then once for every such event, with a crash of its
receiver before it is served, or after some of what it does about it. All runs are judged together.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Service
from greenline.simulation.cluster import Cluster
from greenline.simulation.scenarios.stage import configurations
from greenline.simulation.subjects import RING
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table

SEED = 40
SOON_QUIET = replace(RING, quiet_for=2.0)


def merge(victim: ProcId | None = None, event: int = 0, orders: int = 0) -> tuple[Cluster, dict[ProcId, list[str]]]:
    """p q and r s merge while all of them speak; the victim dies before its event number so-and-so of the merge."""
    ring = Cluster("p q r s", SEED, SOON_QUIET).partition("p q | r s").settle()
    befell: dict[ProcId, list[str]] = {name: [] for name in ring.names}
    arrive = {name: ring.world[name].arrive for name in ring.names}

    def watched(name: ProcId) -> None:
        def look(sender: ProcId, frame: bytes) -> None:
            befell[name].append(ring[name].phase)
            if name == victim and len(befell[name]) == event:
                ring.crash(name, after_orders=orders)
            arrive[name](sender, frame)

        ring.world[name].arrive = look  # type: ignore[method-assign]

    for name in ring.names:
        watched(name)
    for number in range(2):
        for name in ring.names:
            ring[name].multicast(f"{name}{number}", Service.SAFE)
    ring.heal().wait(0.5)
    for name in ring.names:
        ring.world[name].arrive = arrive[name]  # type: ignore[method-assign]
    if victim is not None:
        ring.restart(victim).wait(0.02)
    for name in ring.names:
        ring[name].multicast(f"{name} at last", Service.SAFE)
    return ring.settle(), befell


@pytest.mark.slow
def test_a_crash_of_anybody_at_any_event_of_a_merge_breaks_no_rule() -> None:
    _, befell = merge()
    phases = {phase for each in befell.values() for phase in each}
    assert phases >= {"Operational", "Gather", "Commit", "Form", "EVS"}

    runs: list[tuple[str, list[Row]]] = []
    for victim, events in befell.items():
        for event, orders in product(range(1, len(events)), (0, 1, 2, 3, 5)):
            ring, _ = merge(victim, event, orders)
            runs.append((f"{victim} at {event} after {orders}", ring.quiet_rows()))
            ends = {configurations(ring, name)[-1] for name in ring.names}
            assert ends == {"{p q r s}"}, f"{victim} at {event} after {orders}"
    assert len(runs) > 400
    assert Judge(RING.rules).broken(to_table(runs)) == []
