"""Exactly once: Spark is killed, and the replica that it reads from, and in the end the whole cluster.

This module is also the job that is killed: `python -m tests.pipeline.test_source_kills CLUSTER PLACE`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from greenline.cli.local import Local, waits_for
from greenline.pipeline import session
from tests.node.databases import PATIENCE_S, client, until_primary
from tests.pipeline.test_source_reading import keeping

WRITTEN = 120
SPARK_S = 300.0
"""Until Spark has done something on a busy machine."""


def stream(spark: SparkSession, cluster: Path, place: Path) -> DataStreamWriter:
    """Each batch into a directory of its own: done again, it is the same."""

    def write(frame: DataFrame, batch: int) -> None:
        frame.select("position", "digest").write.mode("overwrite").parquet(str(place / "batches" / f"batch={batch}"))

    reading = spark.readStream.format("greenline").option("at", str(cluster)).option("per_batch", "15")
    marks = str(place / "marks")
    return (
        reading.option("per_partition", "10").load().writeStream.foreachBatch(write).option("checkpointLocation", marks)
    )


def write(local: Local, many: int) -> None:
    async def story() -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
            for number in range(many):
                await db.execute("INSERT INTO t VALUES (?)", (number,))

    asyncio.run(story())


@pytest.mark.long
def test_every_position_comes_once_whoever_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "out"
    with keeping(tmp_path / "cluster", "p q r") as local:
        write(local, WRITTEN)
        _run_and_kill(local, place)

        assert len(_positions(spark, place)) < WRITTEN, "it was killed on the way"
        pid = local.pid("p")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until_primary(local, "q r")
        write(local, 10)
        _finish(spark, local, place)
        _expect_each_once(spark, place, WRITTEN + 12)

        local.stop_all()
        assert local.start_all() == []
        until_primary(local, "p q r")
        write(local, 10)
        _finish(spark, local, place)
        _expect_each_once(spark, place, WRITTEN + 23)


def _run_and_kill(local: Local, place: Path) -> None:
    """While a batch is under way: two are done, and nobody waits for the third."""
    command = [sys.executable, "-m", "tests.pipeline.test_source_kills", str(local.place), str(place)]
    job = subprocess.Popen(command, start_new_session=True)
    try:
        assert waits_for(lambda: job.poll() is not None or (place / "marks" / "commits" / "1").exists(), SPARK_S)
        assert job.poll() is None, "it runs until it is killed"
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(PATIENCE_S)


def _finish(spark: SparkSession, local: Local, place: Path) -> None:
    stream(spark, local.place, place).trigger(availableNow=True).start().awaitTermination()


def _positions(spark: SparkSession, place: Path) -> list[int]:
    return sorted(row.position for row in spark.read.parquet(str(place / "batches")).select("position").collect())


def _expect_each_once(spark: SparkSession, place: Path, at_least: int) -> None:
    found = _positions(spark, place)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= at_least


if __name__ == "__main__":
    stream(session.spark("killed"), Path(sys.argv[1]), Path(sys.argv[2])).start().awaitTermination()
