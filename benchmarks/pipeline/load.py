"""A million rows into three replicas through Spark; then a million more while tasks fail and all run twice at once.

BENCH_ROWS=100000 python -m benchmarks.pipeline.load

In the second load each partition is lost in the middle the first time, and two runs of the same load go on at the same
time, as if Spark speculated on every task (it does not on one machine). Each row must be there once.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from tests.node.databases import client
from tests.pipeline import flaky

from benchmarks.database.cluster import cluster
from greenline.cli.local import Local
from greenline.pipeline import session

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
PARTITIONS = 8
PIECES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "2000"}
"""So that something of a partition is loaded before it is lost."""


def main() -> int:
    spark = session.spark("greenline load", master="local[2,4]", settings=PIECES)
    try:
        with cluster() as local:
            _save(flaky.frame(spark, PARTITIONS, PARTITIONS, at=local.place, load="warm"), local, "warm")
            plain = flaky.frame(spark, ROWS, PARTITIONS, at=local.place, load="plain")
            lost = flaky.frame(spark, ROWS, PARTITIONS, losing=PARTITIONS, times=1, at=local.place, load="lost")
            is_right = _timed("undisturbed", local, "plain", lambda: _save(plain, local, "plain"))
            is_right &= _timed("lost, and twice at once", local, "lost", lambda: _twice(spark, lost, local))
            return 0 if is_right else 1
    finally:
        session.stop()


def _save(frame: DataFrame, local: Local, table: str) -> None:
    told = {"at": str(local.place), "table": table, "load": table, "create": "true"}
    frame.write.format("greenline").options(**told).mode("append").save()


def _twice(spark: SparkSession, frame: DataFrame, local: Local) -> None:
    def run() -> None:
        assert spark._jvm is not None
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # a thread of Java has none at first
        _save(frame, local, "lost")

    other = threading.Thread(target=run)
    other.start()
    run()
    other.join()


def _timed(name: str, local: Local, table: str, load: Callable[[], None]) -> bool:
    begun = time.perf_counter()
    load()
    took = time.perf_counter() - begun
    count, distinct = asyncio.run(_counted(local, table))
    is_right = count == distinct == ROWS
    what = "each once" if is_right else f"FAIL: {count:,} rows, {distinct:,} of them different"
    print(f"{name:<26}{ROWS:>12,} rows {took:>8.1f} s {ROWS / took:>10,.0f} rows/s   {what}", flush=True)
    return is_right


async def _counted(local: Local, table: str) -> tuple[int, int]:
    async with client(local) as db:
        ((count, distinct),) = await db.query(f"SELECT count(*), count(DISTINCT id) FROM {table}")
        return count, distinct


if __name__ == "__main__":
    sys.exit(main())
