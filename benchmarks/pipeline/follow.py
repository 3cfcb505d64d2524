"""How fast a follower archives an order: single inserts of 200 bytes, in bundles as a busy node makes them.

BENCH_ACTIONS=1000000 python -m benchmarks.pipeline.follow

The goal is 200,000 actions a second on two cores: 5 us for the follower itself, which applies and captures, and as much
for the clerk beside it, which makes rows and writes them. Reading the order from a cluster is not in it.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.pipeline.orders import Order

from greenline.pipeline.archive import KINDS, Archive
from greenline.pipeline.follower import Follower

ACTIONS = int(os.environ.get("BENCH_ACTIONS", "1000000"))
TOGETHER = 256
"""Actions of a bundle."""
GOAL = 200_000


def main() -> int:
    order = _order()
    with tempfile.TemporaryDirectory() as directory:
        archive = Archive(Path(directory) / "archive")
        with Follower(archive, order) as follower:
            begun, used = time.perf_counter(), time.process_time()
            follower.advance()
            seconds, own = time.perf_counter() - begun, time.process_time() - used
        times = os.times()
        sizes = {kind: sum(path.stat().st_size for path in archive.files(kind)) / ACTIONS for kind in KINDS}
    rate = ACTIONS / seconds
    clerk = times.children_user + times.children_system
    print(f"{ACTIONS:,} actions in {seconds:.1f} s: {rate:,.0f} a second")
    print(f"us an action   follower {own / ACTIONS * 1e6:.2f}   clerk {clerk / ACTIONS * 1e6:.2f} (and its start)")
    print("bytes an action   " + "   ".join(f"{kind} {size:.0f}" for kind, size in sizes.items()))
    return 0 if rate >= GOAL else 1


def _order() -> Order:
    """Rows that do not compress to nothing."""
    chance = random.Random(1)
    words = [f"{chance.getrandbits(800):0200x}" for _ in range(1000)]
    order = Order()
    order.of("CREATE TABLE inserted (id INTEGER PRIMARY KEY, text TEXT)")
    for first in range(0, ACTIONS, TOGETHER):
        rows = [(words[each % 1000],) for each in range(first, min(first + TOGETHER, ACTIONS))]
        order.series("INSERT INTO inserted (text) VALUES (?)", rows)
    return order


if __name__ == "__main__":
    sys.exit(main())
