"""Rows whose tasks are disturbed on purpose, each in one way, and once: in the middle, when a part of it is loaded.

| partition |                                                                                                      |
|-----------|------------------------------------------------------------------------------------------------------|
| 0, 4      | waits until Spark has started the task a second time elsewhere; then both go on at the same time      |
| 1         | raises an exception                                                                                  |
| 2         | kills all Python workers of its executor, those that write among them                                 |
| 3         | kills its executor                                                                                   |

All others come to their end. What was done is noted in a directory, which all workers must have in common.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from greenline.pipeline.reaching import reach
from greenline.pipeline.sink_ledger import LEDGER

SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.1",
    "spark.task.maxFailures": "8",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
"""Spark speculates early; and hands a partition over in pieces, so that some of it is loaded before it is lost."""
CORES = 2
"""Of a worker, at least: else both that wait could be all that runs."""
WAYS = {0: "ran twice", 1: "raised", 2: "workers killed", 3: "executor killed", 4: "ran twice"}


def frame(
    spark: SparkSession, rows: int, partitions: int, *, at: Path, load: str, notes: Path, is_disturbed: bool
) -> DataFrame:
    spark.dataSource.register(_disturbed(WAYS if is_disturbed else {}))
    told = {"rows": str(rows), "partitions": str(partitions), "at": str(at), "load": load, "notes": str(notes)}
    return spark.read.format("disturbed").options(**told).load()


def seen(notes: Path) -> list[str]:
    """What was done to which partition."""
    return sorted(path.name for path in notes.glob("done *"))


def _disturbed(ways: Mapping[int, str]) -> type[DataSource]:
    """Inside of a function, so that it travels to workers, which cannot import benchmarks."""
    piece, patience = 500, 300.0
    loaded = f"SELECT 1 FROM {LEDGER} WHERE load = ? AND partition = ?"

    class Reader(DataSourceReader):
        def __init__(self, options: dict[str, str]) -> None:
            self.options = options
            self.count = int(options["partitions"])
            self.each = int(options["rows"]) // self.count
            self.notes = Path(options["notes"])

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(self.count)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            begin = partition.value * self.each
            is_disturbed = partition.value in ways and not self.is_twin(partition.value)
            for start in range(begin, begin + self.each, piece):
                if is_disturbed and start >= begin + self.each // 2:
                    is_disturbed = False
                    asyncio.run(self.until_something_is_loaded(partition.value))
                    self.disturb(partition.value, ways[partition.value])
                ids = pa.array(range(start, min(start + piece, begin + self.each)), pa.int64())
                yield pa.record_batch({"id": ids, "text": pa.array([f"number {number}".ljust(100) for number in ids])})

        def is_twin(self, partition: int) -> bool:
            """Does another wait for a second one?"""
            waiting = self.notes / f"waiting {partition}"
            if not waiting.exists() or not Path("/proc", waiting.read_text()).exists():
                return False
            self.done(partition).touch()
            return True

        def done(self, partition: int) -> Path:
            return self.notes / f"done {partition} {ways[partition]}"

        async def until_something_is_loaded(self, partition: int) -> None:
            async with reach({"at": self.options["at"]}).connected() as db, asyncio.timeout(patience):
                while not len(await db.query(loaded, (self.options["load"], partition))):
                    await asyncio.sleep(0.05)

        def disturb(self, partition: int, way: str) -> None:
            done = self.done(partition)
            if done.exists():
                return
            match way:
                case "ran twice":
                    self.wait_for_twin(partition)
                case "raised":
                    done.touch()
                    raise ConnectionError("what this reads from is lost")
                case "workers killed":
                    done.touch()
                    for child in children(os.getppid()):
                        os.kill(child, signal.SIGKILL)
                case "executor killed":
                    done.touch()
                    os.kill(parent(os.getppid()), signal.SIGKILL)

        def wait_for_twin(self, partition: int) -> None:
            aside = self.notes / f"{os.getpid()}"
            aside.write_text(str(os.getpid()))
            aside.rename(self.notes / f"waiting {partition}")
            until = time.monotonic() + patience
            while not self.done(partition).exists():
                assert time.monotonic() < until, "Spark does not speculate"
                time.sleep(0.05)

    def children(pid: int) -> list[int]:
        """Ourselves last."""
        found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return sorted(found, key=lambda each: each == os.getpid())

    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    class Disturbed(DataSource):
        @classmethod
        def name(cls) -> str:
            return "disturbed"

        def schema(self) -> str:
            return "id long, text string"

        def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002
            return Reader(dict(self.options))

    return Disturbed
