"""Beside a live cluster: how late the tables are while three replicas on the same machine take updates all the time.

BENCH_SECONDS=60 BENCH_RATE=20000 python -m benchmarks.pipeline.live

Half of the updates insert a row, the others change one of ten thousand. They are asked for by a process of its own, at
a steady rate; what it could not keep up with is said.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from tests.node.databases import client
from tests.pipeline.clusters import keeping

from benchmarks.figures import Figure
from greenline.cli.local import Local
from greenline.pipeline import session
from greenline.pipeline.progress import Progress
from greenline.pipeline.running import Running, told

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
RATE = int(os.environ.get("BENCH_RATE", "20000"))
WARM_S = 45.0
"""Until Spark is warm, nobody looks how late the files are: who asks for a table does not need to wait for them."""
GOAL_S = 5.0
TOGETHER = 250
CHANGED = 10_000


def measure() -> Iterator[Figure]:
    spark = session.spark("greenline live", settings=session.IN_SMALL_PIECES)
    try:
        with TemporaryDirectory() as place, keeping(Path(place) / "cluster") as local:
            asyncio.run(_create(local))
            words = [sys.executable, "-m", "benchmarks.pipeline.live", str(local.place), str(WARM_S + SECONDS)]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as load:
                cold, warm = _followed(load, Path(place) / "into", local, spark)
                assert load.stdout is not None
                rate = float(load.stdout.read())
            late = max(cold + warm, key=lambda each: each.lag_seconds)
            written = max(each.written_lag_seconds for each in warm)
            beside = f"at {rate:,.0f} updates/s, {late.order:,} positions"
            yield Figure("live: the largest lag of the tables", late.lag_seconds, "s", GOAL_S, False, beside)
            yield Figure("live: the largest lag of the files", written, "s", GOAL_S, False, "once Spark is warm")
            yield Figure("live: updates", rate, "updates/s", 0.95 * RATE, True, f"asked for: {RATE:,}")
    finally:
        session.stop()


def _followed(
    load: subprocess.Popen[str], into: Path, local: Local, spark: SparkSession
) -> tuple[list[Progress], list[Progress]]:
    """What the pipeline says of itself, before Spark is warm and from then on, as long as there is load."""
    cold: list[Progress] = []
    warm: list[Progress] = []
    begun = time.monotonic()
    is_over = threading.Event()

    def tell(now: Progress) -> None:
        if load.poll() is not None:
            is_over.set()
        else:
            (warm if time.monotonic() - begun > WARM_S else cold).append(now)

    with Running(spark, into, told({"at": str(local.place)}), tell=tell) as work:
        work.stream(is_over)
    return cold, warm


async def _create(local: Local) -> None:
    async with client(local) as db:
        await db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, text TEXT)")
        await db.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER)")
        numbers = f"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {CHANGED})"
        await db.execute(f"INSERT INTO counter {numbers} SELECT n, 0 FROM r")


async def _load(local: Local, seconds: float) -> float:
    """Updates a second that were answered."""
    done, begun = 0, time.perf_counter()
    async with client(local, "p") as one, client(local, "q") as other:
        under_way: set[asyncio.Task[int]] = set()
        while (now := time.perf_counter() - begun) < seconds:
            if done + TOGETHER * len(under_way) < now * RATE and len(under_way) < 2 * RATE // TOGETHER:
                batch = one.batch(_updates(done)) if len(under_way) % 2 else other.batch(_updates(done))
                under_way.add(asyncio.create_task(_counted(batch)))
            else:
                await asyncio.sleep(0.005)
            finished = {each for each in under_way if each.done()}
            done += sum(each.result() for each in finished)
            under_way -= finished
        await asyncio.gather(*under_way)
        return done / (time.perf_counter() - begun)


async def _counted(batch: object) -> int:
    return len(await batch)  # type: ignore[misc]


def _updates(start: int) -> list[tuple[str, tuple[object, ...]]]:
    inserts = [("INSERT INTO event (text) VALUES (?)", (f"{start + n:>100}",)) for n in range(TOGETHER // 2)]
    rows = [(start + 7 * n) % CHANGED + 1 for n in range(TOGETHER - len(inserts))]
    return [*inserts, *(("UPDATE counter SET n = n + 1 WHERE id = ?", (row,)) for row in rows)]


def main() -> int:
    if len(sys.argv) == 3:
        print(asyncio.run(_load(Local(Path(sys.argv[1])), float(sys.argv[2]))))
        return 0
    missed = 0
    for figure in measure():
        print(figure, flush=True)
        missed += not figure.is_met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
