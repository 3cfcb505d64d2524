"""Draining: an existing log of a million actions into the archive and the tables, on this machine.

BENCH_ACTIONS=200000 python -m benchmarks.pipeline.drain

The replicas are stopped when it begins: the log is read from the files of one of them. Starting Spark is not counted;
the comparison of the tables with the follower's database comes afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from benchmarks.database.cluster import cluster, create, insert
from benchmarks.figures import Figure
from greenline.pipeline import session
from greenline.pipeline.running import Running, Told
from greenline.pipeline.source_files import LogFiles

ACTIONS = int(os.environ.get("BENCH_ACTIONS", "1000000"))
GOAL = 200_000


def measure() -> Iterator[Figure]:
    spark = session.spark("greenline drain")
    try:
        with cluster() as local, TemporaryDirectory() as into:
            # As long as r is away, the others keep all that it lacks: then the log is there from its beginning.
            asyncio.run(create(local))
            local.kill("r")
            asyncio.run(insert(local, "p q", ACTIONS))
            local.stop_all()
            _warm(spark)
            with Running(spark, Path(into), Told(LogFiles(local.configs["p"].data))) as work:
                begun = time.perf_counter()
                ended = work.run(verifies=False)
                seconds = time.perf_counter() - begun
                actions = work.tables.log("actions").count()
                work.compare()
            beside = f"{actions:,} actions in {ended.archived:,} bundles, {seconds:.1f} s"
            assert ended.rows["inserted"] >= ACTIONS
            yield Figure("a log drained into tables", actions / seconds, "actions/s", GOAL, True, beside)
    finally:
        session.stop()


def _warm(spark: SparkSession) -> None:
    """Spark has done something, and so have its workers in Python."""
    spark.range(10).selectExpr("sum(id)").collect()
    there = spark.sparkContext.parallelize(range(2), 2)
    there.map(lambda _: bool(import_module("greenline.pipeline.tables_inserting"))).collect()


def main() -> int:
    missed = 0
    for figure in measure():
        print(figure, flush=True)
        missed += not figure.is_met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
