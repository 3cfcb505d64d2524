"""The audit on Spark: traces of any size, on this machine or on as many as there are.

What rules share is made once and kept as files, so that no plan grows beyond one rule. Since rules never look
across runs, those files are bucketed by run wherever runs are many: then no join, window or aggregate has to move a
row, and each works on one bucket at a time. A run that is a good part of the trace by itself would be a bucket too
large for one task; such a trace is not bucketed, and Spark moves rows by all of a rule's keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from greenline.pipeline import certifying
from greenline.pipeline.report_trace import of_spark
from greenline.spec.certificate import SORTED_BY, STEPS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET = 400_000
"""Events of a bucket: what a task sorts in memory."""
LONGEST = 4
"""Buckets' worth of events that a run may have: its bucket has all of them."""
MOST_BUCKETS = 1_000
SMALL = 200_000
"""Events below which making code and planning anew cost more than they bring."""
DATABASE = "greenline_audit"

_SETTINGS = {
    # Buckets by run serve whatever else rows are joined and counted by.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # A bucket's share of a table makes a small hash table, and saves sorting the large side.
    "spark.sql.join.preferSortMergeJoin": "false",
    # By the size of files, which compress well: what is a megabyte on disk may be fifty in memory.
    "spark.sql.autoBroadcastJoinThreshold": str(1 << 20),
    # A rule that holds has no rows: do not look for them in one partition after the other.
    "spark.sql.limit.initialNumPartitions": str(10 * MOST_BUCKETS),
}
_SETTINGS_OF_SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}


class Spark:
    name = "spark"
    errors: tuple[type[Exception], ...] = (PySparkException, Py4JError, ConnectionError)

    def __init__(self, session: SparkSession, files: Sequence[Path], work: Path) -> None:
        self._session = session.newSession()
        self._work = work
        self._buckets = 1
        self.is_bucketed = False
        for key, value in _SETTINGS.items():
            self._session.conf.set(key, value)
        certifying.register(self._session)
        self._session.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION '{work.as_uri()}/database'")
        self._whole = self._session.read.parquet(*(str(path) for path in files))
        self._whole.createOrReplaceTempView("whole")

    def rows(self, sql: str, at_most: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        found = self._session.sql(sql)
        rows = (found if at_most is None else found.limit(at_most)).collect()
        return found.columns, [tuple(row) for row in rows]

    def select(self, sql: str, values: Sequence[Any]) -> pa.Table:
        return of_spark(self._session)(sql, values)

    def lay_out(self, events: int, longest: int) -> None:
        cores = self._session.sparkContext.defaultParallelism
        wanted = min(-(-events // BUCKET), MOST_BUCKETS)
        self._buckets = 1 if events <= SMALL else max(wanted, 2 * cores)
        self.is_bucketed = self._buckets > 1 and longest <= LONGEST * BUCKET
        settings = {"spark.sql.shuffle.partitions": str(self._buckets)}
        for key, value in (settings | (_SETTINGS_OF_SMALL if events <= SMALL else {})).items():
            self._session.conf.set(key, value)

    def narrow(self, fitting: str | None) -> None:
        trace = self._whole
        if fitting is not None:
            self.make("fitting", fitting)
            trace = trace.join(self._session.table("fitting"), "run", "left_semi")
        if self.is_bucketed:
            trace = trace.repartition(self._buckets, "run")
        trace.createOrReplaceTempView("trace")

    def widen(self) -> None:
        self._whole.createOrReplaceTempView("trace")

    def make(self, name: str, sql: str) -> None:
        self._keep(name, self._session.sql(sql))

    def certify(self) -> None:
        steps = self._work / "steps"
        sorted_steps = self._session.sql(STEPS).repartition(self._buckets, "run").sortWithinPartitions(*SORTED_BY)
        writer = sorted_steps.write.mode("overwrite").option("parquet.block.size", certifying.ROW_GROUP_BYTES)
        writer.parquet(str(steps))
        self._keep("certificate", self._session.read.format(certifying.FORMAT).load(str(steps)))

    def close(self) -> None:
        with suppress(Py4JError, ConnectionError):  # Java may be lost; all is in the place for work
            self._session.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")

    def _keep(self, name: str, table: DataFrame) -> None:
        """As files, under that name."""
        place = str(self._work / name)
        writer = table.write.mode("overwrite")
        if self.is_bucketed and "run" in table.columns:
            writer.bucketBy(self._buckets, "run").option("path", place).saveAsTable(f"{DATABASE}.{name}")
            kept = self._session.table(f"{DATABASE}.{name}")
        else:
            writer.parquet(place)
            kept = self._session.read.parquet(place)
        kept.createOrReplaceTempView(name)
