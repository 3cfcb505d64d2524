"""Sites far apart: three network namespaces with delay and loss between them, and a load.

python -m benchmarks.sites [SECONDS]    # of load for each distance; 600 is what the documentation states
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.lab.faults import Faults
from tests.lab.sites import Lab

from benchmarks.faults import Asker
from benchmarks.figures import Figure
from benchmarks.spine.cluster import NAMES, Cluster

ROUND_TRIPS_S = (0.040, 0.100)
LOSS = 0.01
SECONDS = 20.0
KILLS = 5
SAFE = 5.5
"""In round trips: the token comes within a rotation of one and a half, and what it took is safe after two more of them;
a lost packet costs another."""


def measure(seconds: float = SECONDS) -> Iterator[Figure]:
    for round_trip in ROUND_TRIPS_S:
        yield from _at(round_trip, seconds)


def _at(round_trip: float, seconds: float) -> Iterator[Figure]:
    far = f"{1000 * round_trip:.0f} ms apart, {LOSS:.0%} loss"
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        lab = stack.enter_context(Lab(" ".join(NAMES), seed=round_trip))
        lab.everywhere(Faults(delay=round_trip / 2, loss=LOSS))
        cluster = stack.enter_context(Cluster(Path(place), lab=lab))
        askers = []
        for name in NAMES:
            with lab.inside(name):
                askers.append(Asker(cluster.clients[name]))
        took: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            took += [asker.ask() for asker in askers]
        changes = cluster.configurations("p")
        yield Figure(f"{far}: configuration changes in {seconds:.0f} s", changes, "", 0, False)
        yield Figure(f"{far}: a message, p50", statistics.median(took) / round_trip, "round trips", SAFE, False)
        yield Figure(
            f"{far}: failover, the longest of {KILLS}", _failover(cluster, askers[0]) / round_trip, "round trips"
        )
        yield Figure(f"{far}: merge after a cut", _merge(lab, cluster) / round_trip, "round trips")


def _failover(cluster: Cluster, asker: Asker) -> float:
    took: list[float] = []
    for number in range(KILLS):
        victim = ("q", "r")[number % 2]
        asker.ask()
        begun = time.monotonic()
        cluster.kill(victim)
        asker.ask()
        took.append(time.monotonic() - begun)
        cluster.wait_for("p", tuple(name for name in NAMES if name != victim))
        cluster.restart(victim)
        cluster.wait_for("p", NAMES)
        cluster.wait_for(victim, NAMES)
    return max(took)


def _merge(lab: Lab, cluster: Cluster) -> float:
    lab.cut("p q | r")
    cluster.wait_for("p", ("p", "q"))
    begun = time.monotonic()
    lab.heal()
    cluster.wait_for("p", NAMES)
    return time.monotonic() - begun


if __name__ == "__main__":
    for figure in measure(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS):
        print(figure, flush=True)
