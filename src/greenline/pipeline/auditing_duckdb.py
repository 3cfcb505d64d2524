"""The audit on DuckDB: in this process, out of core, for what one machine can hold on its disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from greenline.pipeline.certifying import certified
from greenline.spec.certificate import SCHEMA, SORTED_BY, STEPS

MEMORY = "3GB"
"""Beyond it DuckDB goes to disk; the certificate needs some as well."""
ROW_GROUP = 50_000
TOGETHER = 5_000_000
"""Events whose steps are sorted at once: a sort of wide rows goes to disk later than its memory is used up."""


class DuckDb:
    name = "duckdb"
    errors: tuple[type[Exception], ...] = (duckdb.Error,)

    def __init__(self, trace: Sequence[Path] | pa.Table, work: Path) -> None:
        self._work = work
        self._parts = 1
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": str(os.cpu_count() or 1),
            "memory_limit": MEMORY,
            "temp_directory": str(work / "spilled"),
            "preserve_insertion_order": "false",
        }
        self._connection = duckdb.connect(str(work / "audit.duckdb"), config=config)
        if isinstance(trace, pa.Table):
            self._connection.register("whole", trace)
        else:
            files = ", ".join(map(_quoted, trace))
            self._connection.execute(
                f"CREATE TEMP VIEW whole AS SELECT * FROM read_parquet([{files}], hive_partitioning = false)"
            )

    def rows(self, sql: str, at_most: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        result = self._connection.execute(sql)
        names = [column[0] for column in result.description or ()]
        return names, result.fetchall() if at_most is None else result.fetchmany(at_most)

    def select(self, sql: str, values: Sequence[Any]) -> pa.Table:
        return self._connection.sql(sql, params=list(values)).to_arrow_table()

    def lay_out(self, events: int, longest: int) -> None:  # noqa: ARG002  it sees to long runs by itself
        self._parts = -(-events // TOGETHER)

    def narrow(self, fitting: str | None) -> None:
        if fitting is not None:
            self.make("fitting", fitting)
        these = "" if fitting is None else " SEMI JOIN fitting f ON f.run = w.run"
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW trace AS SELECT w.* FROM whole w{these}")

    def widen(self) -> None:
        self.narrow(None)

    def make(self, name: str, sql: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {sql}")

    def certify(self) -> None:
        """Some runs after the others: no step looks at another run."""
        found = self._work / "certificate.parquet"
        with pq.ParquetWriter(found, SCHEMA) as writer:
            for part in range(self._parts):
                for batch in certified(self._sorted_steps(part)):
                    writer.write_batch(batch)
        self.make("certificate", f"SELECT * FROM read_parquet({_quoted(found)})")

    def _sorted_steps(self, part: int) -> Path:
        steps = self._work / "steps.parquet"
        some = f"SELECT * FROM ({STEPS}) steps WHERE hash(run) % {self._parts} = {part} ORDER BY {', '.join(SORTED_BY)}"
        self._connection.execute(f"COPY ({some}) TO {_quoted(steps)} (FORMAT parquet, ROW_GROUP_SIZE {ROW_GROUP})")
        return steps

    def close(self) -> None:
        self._connection.close()


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
