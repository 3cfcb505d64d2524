"""Three nodes and their clients, for some seconds."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.spine.cluster import Cluster
from benchmarks.spine.load import Load

WARM_S = 1.0


@dataclass(frozen=True)
class Outcome:
    rate: float
    """Messages a second, answered: ordered, and forced on three nodes or about to be."""
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of all nodes together, for each message."""
    nodes: dict[str, Any]

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} messages/s   p50 {self.p50_ms:.2f} ms   p99 {self.p99_ms:.2f} ms"
            f"   {self.cpu_us:.2f} us of CPU each"
        )


def run(seconds: float = 5.0, connections: int = 2, window: int = 2000, **how: Any) -> Outcome:
    """`how`: see `Cluster`."""
    with tempfile.TemporaryDirectory() as place, Cluster(Path(place), **how) as cluster:
        load = Load(list(cluster.clients.values()), connections, window)
        load.run(WARM_S)
        load.forget()
        before = load.answered
        cluster.begin_counting()
        load.run(seconds)
        answered = load.answered - before
        nodes = cluster.end()
        load.close()
    took = load.latencies()
    return Outcome(
        answered / seconds,
        1000 * took[len(took) // 2],
        1000 * took[len(took) * 99 // 100],
        1e6 * sum(said["cpu"] for said in nodes.values()) / answered,
        nodes,
    )
