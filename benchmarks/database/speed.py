"""Speed: `greenline bench database`, as figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from greenline.cli.database_bench import measured


def measure() -> Iterator[Figure]:
    for each in measured(10.0, 3.0):
        cpu = f"{each.node_us:.1f} + {each.load_us:.1f} us of CPU each"
        beside = f"p50 {each.p50_ms:.1f} ms, p99 {each.p99_ms:.1f} ms, {cpu}"
        yield Figure(each.what, each.rate, "rows/s", each.goal, True, beside)
