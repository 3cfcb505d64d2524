"""The certificate as a source of Spark: a task a file of steps, wherever a worker is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from greenline.pipeline.certifying import FORMAT, certified
from greenline.spec.certificate import CARRIED


class Certificates(DataSource):
    """Its path is a directory of files of steps, each of whole runs."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        carried = ", ".join(f"{name} string" for name in CARRIED)
        return f"run string, process string, n bigint, {carried}, before bigint, cut bigint, ord bigint"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return Reader(Path(self.options["path"]))


class Reader(DataSourceReader):
    def __init__(self, place: Path) -> None:
        self._place = place

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(self._place.glob("*.parquet"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from certified(Path(partition.value))
