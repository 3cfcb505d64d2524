"""Recovery: a replica that was killed with much in its log and in its database is ready again in seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from tests.node.databases import until_primary

from benchmarks.database import sizes
from benchmarks.database.cluster import cluster, create, fill, insert, memory
from benchmarks.figures import Figure

READY_WITHIN_S = 10.0


def measure() -> Iterator[Figure]:
    with cluster() as local:
        asyncio.run(create(local))
        asyncio.run(fill(local, sizes.RECOVERED_BYTES))
        asyncio.run(insert(local, "p q r", sizes.ACTIONS))
        what = f"{sizes.RECOVERED_BYTES / 1e9:.1f} GB, {sizes.ACTIONS:,} actions"
        local.kill("r")
        begun = time.perf_counter()
        local.restart("r")
        until_primary(local, "p q r")
        seconds = time.perf_counter() - begun
        yield Figure(f"one replica killed, {what}", seconds, "s", READY_WITHIN_S, False, f"{memory(local, 'r')} MB")
        for name in local.names:
            local.kill(name)
        begun = time.perf_counter()
        assert local.start_all() == []
        until_primary(local, "p q r")
        yield Figure(f"all killed, {what}", time.perf_counter() - begun, "s", READY_WITHIN_S, False)
