"""Asking a trace, wherever it is: SQL that DuckDB and Spark have in common, over a table named `trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from greenline.kernel.evidence import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Select = Callable[[str, Sequence[Any]], pa.Table]
"""A query with `?` for each of these values. They never become part of its text: a trace may hold anything."""

NEAR = 500_000
"""Rows that are fetched, to be asked here: cheaper than many questions to a trace that is large, or far away."""


def of_table(trace: pa.Table) -> Select:
    connection = duckdb.connect(":memory:")
    connection.register("given", trace)
    connection.execute("CREATE TABLE trace AS SELECT * FROM given")  # asked often: Arrow would be read anew each time
    return lambda sql, values: connection.sql(sql, params=list(values)).to_arrow_table()


def of_spark(session: SparkSession) -> Select:
    """Asks the session's view `trace`."""
    return lambda sql, values: session.sql(sql, args=list(values)).toArrow()


def near(select: Select, runs: Iterable[str]) -> Select:
    """The same trace for questions about these runs only, fetched if they are not too large."""
    wanted = list(dict.fromkeys(runs))
    if not wanted:
        return select
    these = f"FROM trace WHERE run IN ({holes(wanted)})"
    (count,) = select(f"SELECT count(*) AS rows {these}", wanted)["rows"].to_pylist()
    return of_table(select(f"SELECT * {these}", wanted)) if count <= NEAR else select


def holes(values: Sequence[Any]) -> str:
    return ", ".join("?" for _ in values)


def to_rows(table: pa.Table) -> list[Row]:
    return [Row(**row) for row in table.select(list(Row.__struct_fields__)).to_pylist()]
