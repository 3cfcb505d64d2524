"""A source of rows whose tasks fail: some of its partitions are lost in the middle, when a part of them is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from greenline.pipeline.reaching import reach
from greenline.pipeline.sink_ledger import LEDGER

PIECE = 100
"""Rows that it hands over at a time."""
WIDTH = 100
"""Of a text: half a partition must be more than Spark keeps back."""
LOADED = f"SELECT 1 FROM {LEDGER} WHERE load = ? AND partition = ?"


def frame(
    spark: SparkSession, rows: int, partitions: int, *, losing: int = 0, times: int = 0, at: Path, load: str
) -> DataFrame:
    """The first `losing` partitions are lost `times` times, while they are loaded there by this load."""
    spark.dataSource.register(_flaky())
    sizes = {"rows": rows, "partitions": partitions, "losing": losing, "times": times}
    return spark.read.format("flaky").options(**sizes).options(at=str(at), load=load).load()


def _flaky() -> type[DataSource]:
    """Inside of a function, so that it travels to workers, which cannot import tests."""
    piece, width, loaded = PIECE, WIDTH, LOADED

    class Reader(DataSourceReader):
        def __init__(self, at: str, load: str, rows: int, partitions: int, losing: int, times: int) -> None:
            self.at = at
            self.load = load
            self.each = rows // partitions
            self.count = partitions
            self.losing = losing
            self.times = times

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(self.count)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            task = TaskContext.get()
            assert task is not None, "Spark runs this in a task"
            is_lost = partition.value < self.losing and task.attemptNumber() < self.times
            begin = partition.value * self.each
            for start in range(begin, begin + self.each, piece):
                if is_lost and start >= begin + self.each // 2:
                    asyncio.run(self.until_something_is_loaded(partition.value))
                    raise ConnectionError("the executor is lost")
                ids = pa.array(range(start, min(start + piece, begin + self.each)), pa.int64())
                yield pa.record_batch(
                    {"id": ids, "text": pa.array([f"number {number}".ljust(width) for number in ids])}
                )

        async def until_something_is_loaded(self, partition: int) -> None:
            async with reach({"at": self.at}).connected() as db, asyncio.timeout(60):
                while not len(await db.query(loaded, (self.load, partition))):
                    await asyncio.sleep(0.05)

    class Flaky(DataSource):
        @classmethod
        def name(cls) -> str:
            return "flaky"

        def schema(self) -> str:
            return "id long, text string"

        def reader(self, schema: object) -> DataSourceReader:
            numbers = [int(self.options[name]) for name in ("rows", "partitions", "losing", "times")]
            return Reader(self.options["at"], self.options["load"], *numbers)

    return Flaky
