"""The thesis's figures of the Ring (5.3), in virtual time on a shared bus: the same on every machine.

BENCH_SAMPLES=samples python -m benchmarks.thesis
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.samples import Samples
from greenline.simulation.measuring import KILOBYTE, rate_on_bus, safe_latencies_on_bus

MEMBERS = (2, 4, 8, 16)
SIZES = (256, 512, 800, 1024, 1400)
LOADS = (100, 300, 500, 650, 750)
"""Messages a second."""
KEPT = 200
"""Latencies of each load that are kept as samples, evenly among all."""


def measure() -> Iterator[Figure]:
    samples = Samples("thesis")
    for members in MEMBERS:
        rate = rate_on_bus(members, KILOBYTE)
        samples.add("Ring, simulated", "throughput", rate, "1/s", members=members, bytes=KILOBYTE)
        yield Figure(f"thesis 5.4: 1 KB messages a second, {members} members", rate, "1/s")
    for size in SIZES:
        rate = rate_on_bus(4, size)
        if size != KILOBYTE:
            samples.add("Ring, simulated", "throughput", rate, "1/s", members=4, bytes=size)
        yield Figure(f"thesis 5.5: messages a second of {size} bytes", rate, "1/s")
    for members in (4, 8):
        for load in LOADS:
            taken = sorted(1000 * each for each in safe_latencies_on_bus(members, load))
            for latency in taken[:: max(1, len(taken) // KEPT)]:
                samples.add("Ring, simulated", "safe latency", latency, "ms", members=members, load=load)
            name = f"thesis 5.6: safe delivery at {load} messages a second, {members} members, p50"
            yield Figure(name, statistics.median(taken), "ms")
    samples.keep()


if __name__ == "__main__":
    for figure in measure():
        print(figure, flush=True)
