"""An order for people: the rows of a run as one line of events.

A trace has no global order. What one writer wrote stays in the order in which it wrote it; between writers, the
earlier clock goes first, but never a delivery before its message was generated. It is a telling, not a proof: no
rule is judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow.compute as pc

from greenline.kernel.evidence import DELIVER, GENERATE, Row
from greenline.trace.stream import NotATrace
from greenline.trace.tables import Report, load_file, nobody, trace_files


def runs_at(place: Path, report: Report = nobody) -> list[str]:
    """The runs that have rows at this place, in the order in which they are found."""
    found: dict[str, None] = {}
    for path in trace_files(place):
        found |= dict.fromkeys(load_file(path, report).column("run").to_pylist())
    return list(found)


def told(place: Path, run: str | None = None, report: Report = nobody) -> tuple[str, list[Row]]:
    """One run at this place as a line of events. The run may be left out where there is only one."""
    runs = runs_at(place, report)
    if not runs:
        raise NotATrace(f"{place} has no rows: its writer was killed before the first were flushed")
    if run is None and len(runs) > 1:
        some = ", ".join(runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise ValueError(f"{place} holds {len(runs)} runs; name one with --run ({some})")
    chosen = run or runs[0]
    if chosen not in runs:
        raise ValueError(f"{place} has no run {chosen!r}; 'greenline trace show' lists its runs")
    return chosen, merge(_rows(path, chosen) for path in trace_files(place))


def _rows(path: Path, run: str) -> list[Row]:
    table = load_file(path)
    mine = table.filter(pc.equal(table.column("run"), run)).drop_columns(["run"])
    return [Row(**row) for row in mine.to_pylist()]


def merge(writers: Iterable[Sequence[Row]]) -> list[Row]:
    """Several writers' rows as one line."""
    queues = [list(reversed(rows)) for rows in writers if rows]
    if len(queues) == 1:
        return queues[0][::-1]
    to_come = {row.message for rows in queues for row in rows if row.kind == GENERATE}
    line: list[Row] = []
    while queues := [queue for queue in queues if queue]:
        free = [queue for queue in queues if not (queue[-1].kind == DELIVER and queue[-1].message in to_come)]
        row = min(free or queues, key=lambda queue: (queue[-1].time, queue[-1].process)).pop()
        if row.kind == GENERATE:
            to_come.discard(row.message)
        line.append(row)
    return line
