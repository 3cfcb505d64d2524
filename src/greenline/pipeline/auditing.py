"""What the engines of an audit have in common: the questions, and what an engine must be able to do.

The text of a question is the same on DuckDB and on Spark, as that of a rule is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.trace.stream import NotATrace
from greenline.trace.tables import PARQUET, Report, nobody, retyped, rows_in_parquet, to_parquet, trace_files

MOST_MEMBERS = 256
"""`spec/evs/tables/04_member.sql` counts so far."""

SURVEY = """
WITH by_run AS (
    SELECT run,
           count(*) AS events,
           max(CASE WHEN layer = 'noticeboard' THEN 1 ELSE 0 END) AS noticeboard,
           max(CASE WHEN layer = 'engine' THEN 1 ELSE 0 END) AS engine,
           max(CASE WHEN coalesce(layer, '') NOT IN ('noticeboard', 'engine')
                     AND kind IN ('regular', 'transitional', 'send', 'deliver') THEN 1 ELSE 0 END) AS evs,
           count(CASE WHEN process IS NULL OR incarnation IS NULL OR local_index IS NULL OR time IS NULL OR kind IS NULL
                      THEN 1 END) AS incomplete,
           max(CASE WHEN kind IN ('regular', 'transitional')
                    THEN length(members) - length(replace(members, ' ', '')) END) + 1 AS members
    FROM whole
    GROUP BY run
)
SELECT noticeboard, engine, evs, count(*) AS runs, CAST(sum(events) AS BIGINT) AS events, max(events) AS longest,
       CAST(sum(CASE WHEN run IS NULL THEN events ELSE incomplete END) AS BIGINT) AS incomplete,
       coalesce(max(members), 0) AS members
FROM by_run
GROUP BY noticeboard, engine, evs
ORDER BY noticeboard, engine, evs
"""
"""The runs by what they hold, and so by which rules fit them."""

FITTING = """
SELECT run
FROM whole
GROUP BY run
HAVING max(CASE WHEN layer = 'noticeboard' THEN 1 ELSE 0 END) = {noticeboard}
   AND max(CASE WHEN layer = 'engine' THEN 1 ELSE 0 END) = {engine}
   AND max(CASE WHEN coalesce(layer, '') NOT IN ('noticeboard', 'engine')
                 AND kind IN ('regular', 'transitional', 'send', 'deliver') THEN 1 ELSE 0 END) = {evs}
"""


@dataclass(frozen=True)
class Kind:
    """Runs that hold the same, and so are judged by the same rules."""

    noticeboard: int
    engine: int
    evs: int
    runs: int
    events: int
    longest: int
    incomplete: int
    members: int
    """Of the largest configuration."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The rules of a run's protocol, and of what every provider of the port promises."""
        fitting = {"run"}
        if self.noticeboard:
            fitting.add("noticeboard")
        if self.engine:
            fitting |= {"replication", "access"}
        if self.evs:
            fitting |= {"evs", "provider"}
        return tuple(sorted(fitting))

    @property
    def fitting(self) -> str:
        return FITTING.format(noticeboard=self.noticeboard, engine=self.engine, evs=self.evs)


class Engine(Protocol):
    """Holds a trace as the table `whole`, and of it the runs that are judged now as `trace`."""

    name: str
    errors: tuple[type[Exception], ...]
    """What it raises if it cannot go on."""

    def select(self, sql: str, values: Sequence[Any], /) -> pa.Table:
        """Ask the trace; `report_trace.Select`."""

    def rows(self, sql: str, at_most: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows."""

    def lay_out(self, events: int, longest: int) -> None:
        """What is to come: how many events, and how many of the longest run."""

    def narrow(self, fitting: str | None) -> None:
        """Make `trace` of the runs that this query names, or of all."""

    def widen(self) -> None:
        """Make `trace` of all runs again, for those who ask it after all is judged."""

    def make(self, name: str, sql: str) -> None:
        """Make a table that rules share."""

    def certify(self) -> None:
        """Make the table `certificate`."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Trace:
    """The files of a trace, all of them Parquet, and how many rows they have."""

    files: list[Path]
    """By names of ours. What a person calls a file or a directory may be a pattern to an engine, or a column and its
    value, or something to pass over; and then other rows are judged than are there."""
    sources: list[Path]
    """Which file each of them was made of."""
    rows: int


def whole_trace(place: Path, work: Path, report: Report = nobody) -> Trace:
    """The trace in a file or a directory; streams are converted into the place for work."""
    sources, rows = trace_files(place), 0
    files = [work / f"part-{number}{PARQUET}" for number in range(len(sources))]
    for source, file in zip(sources, files, strict=True):
        if source.suffix != PARQUET:
            rows += to_parquet(source, report, file)[1]
            continue
        count, is_ours = rows_in_parquet(source)
        rows += count
        if is_ours:
            file.symlink_to(source)
        else:
            retyped(source, file)
    return Trace(files, sources, rows)


def damaged(trace: Trace) -> str:
    """The first file that cannot be read to its end, after an engine has stumbled: not all of them say over which."""
    for source, file in zip(trace.sources, trace.files, strict=True):
        try:
            with pq.ParquetFile(file) as whole:
                for batch in whole.iter_batches():
                    batch.validate(full=True)
        except FileNotFoundError:
            return f"{source} is gone"
        except (pa.ArrowException, OSError):
            return f"{source} is damaged"
    return ""


def check_fit(kinds: list[Kind], place: str) -> None:
    if incomplete := sum(kind.incomplete for kind in kinds):
        raise NotATrace(
            f"{place} has {incomplete} rows that lack a run, process, incarnation, local_index, time or kind"
        )
    if (members := max(kind.members for kind in kinds)) > MOST_MEMBERS:
        raise NotATrace(f"{place} has a configuration of {members} processes; rules look at {MOST_MEMBERS} at most")
