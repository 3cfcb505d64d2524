"""Speed: `greenline bench database`, as figures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.samples import Samples
from greenline.cli.database_bench import NAMES, SESSIONS, measured
from greenline.cli.inserts import ROW_BYTES


def measure() -> Iterator[Figure]:
    samples = Samples("database")
    for each in measured(10.0, 3.0):
        how = {"replicas": len(NAMES), "bytes": ROW_BYTES, "sessions": SESSIONS * len(NAMES)}
        samples.add(each.level, "throughput", each.rate, "rows/s", **how)
        for percentile, latency in ((50, each.p50_ms), (99, each.p99_ms)):
            samples.add(each.level, "latency", latency, "ms", percentile=percentile, **how)
        samples.add(each.level, "CPU of the nodes", each.node_us, "us a row", **how)
        samples.add(each.level, "CPU of the clients", each.load_us, "us a row", **how)
        samples.keep()
        cpu = f"{each.node_us:.1f} + {each.load_us:.1f} us of CPU each"
        beside = f"p50 {each.p50_ms:.1f} ms, p99 {each.p99_ms:.1f} ms, {cpu}"
        yield Figure(each.what, each.rate, "rows/s", each.goal, True, beside)
