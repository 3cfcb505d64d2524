"""A scene: the part of a run that a violation is about, small enough for a person.

The witness of a violation names a row, or messages, configurations and positions. The rows that say so are the
evidence, some rows before and after each are the scene, and what every process was doing when it begins is told first.
What is near is decided by the clocks in the trace: this is a telling, not a proof. Three questions are asked of the
trace, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from greenline.kernel import evidence
from greenline.kernel.evidence import WORLD, Row
from greenline.pipeline.report_trace import Select, holes, near, to_rows
from greenline.spec.judge import Broken
from greenline.trace.diagram import OMITTED
from greenline.trace.order import merge

MOST_EVIDENCE = 8
MOST_ROWS = 90
MOST_MARKED = 6
_TOLD = (*sorted(evidence.EVIDENCE), evidence.PHASE, evidence.FAULT, evidence.HEALED)
_UNTOLD = (evidence.IGNORED, evidence.PACKET, evidence.DROPPED, evidence.BUSY, evidence.DIGEST)
_CONFS = (evidence.REGULAR, evidence.TRANSITIONAL)
_TURNS = (evidence.START, evidence.REGULAR, evidence.TRANSITIONAL, evidence.CRASH, evidence.HALT)
"""After which a process stands elsewhere than before."""
_COLUMNS = ", ".join(Row.__struct_fields__)

Identity = tuple[str, int, int]


class Placed(NamedTuple):
    """A row, and its place among those of its run that are told."""

    place: int
    row: Row


def _quoted(kinds: Iterable[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


_IS_TOLD = (
    f"(kind IN ({_quoted(_TOLD)}) OR (kind NOT IN ({_quoted(_UNTOLD)})"
    " AND (message IS NOT NULL OR position IS NOT NULL OR members IS NOT NULL)))"
)
"""Evidence, and what a core says that rules read; not what it mutters for who debugs it."""
_RUN = f"""
WITH told AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY time, process, incarnation, local_index) AS place
    FROM trace
    WHERE run = ? AND {_IS_TOLD}
)
"""
MOST_FOUND = 1000
"""Rows that are looked at for evidence."""


@dataclass(frozen=True)
class Scene:
    rows: list[Row]
    marked: frozenset[Identity]
    """The events that the violation is about."""
    accused: frozenset[str]
    """The processes that it names."""

    def is_marked(self, row: Row) -> bool:
        return row.kind != OMITTED and identity(row) in self.marked


SceneOf = Callable[[Broken], Scene]


def identity(row: Row) -> Identity:
    return row.process, row.incarnation, row.local_index


def scenes(select: Select, broken: Iterable[Broken]) -> SceneOf:
    """How to see these violations."""
    nearer = near(select, (each.run for each in broken))
    return lambda each: scene(nearer, each)


def scene(select: Select, broken: Broken) -> Scene:
    clues = Clues.of(broken)
    found = sorted(clues.evidence(select), key=lambda each: (-clues.weight(each.row), each.place))[:MOST_EVIDENCE]
    most = max((clues.weight(row) for _, row in found), default=0)
    marked = [identity(row) for _, row in found if clues.weight(row) == most > _CONTEXT][:MOST_MARKED]
    rows: list[Row] = []
    for part in _with_standing(select, broken.run, _parts(select, broken.run, found)):
        rows += [*part, _omitted()]
    return Scene(rows[:-1], frozenset(marked), frozenset(clues.processes))


_CONTEXT, _POSITION, _CONF, _MESSAGE, _ROW = range(5)
"""What a row has to do with a witness, the more the higher."""


@dataclass(frozen=True)
class Clues:
    """What a witness names. Rules choose their columns as they need them, so values are looked for where they fit."""

    run: str
    row: Identity | None
    processes: tuple[str, ...]
    names: tuple[str, ...]
    """Of messages or configurations."""
    position: int | None

    @staticmethod
    def of(broken: Broken) -> Clues:
        witness = broken.witness
        place = tuple(witness.get(name) for name in ("process", "incarnation", "local_index"))
        texts = {name: value for name, value in witness.items() if isinstance(value, str) and value}
        processes = (value for name, value in texts.items() if name in ("process", "server", "other"))
        position = witness.get("position")
        return Clues(
            broken.run,
            None if None in place else (str(place[0]), int(place[1]), int(place[2])),  # type: ignore[arg-type]
            tuple(dict.fromkeys(processes)),
            tuple(dict.fromkeys(value for name, value in texts.items() if name != "process")),
            position if isinstance(position, int) else None,
        )

    def evidence(self, select: Select) -> list[Placed]:
        """Rows that say what the witness says; if there are none, the last that its process said, or anybody."""
        tests: list[tuple[str, Sequence[Any]]] = []
        if self.row is not None:
            tests.append(("(process = ? AND incarnation = ? AND local_index = ?)", self.row))
        if self.names:
            several = holes(self.names)
            # DuckDB 2.0 cannot split a column that has nothing but NULL.
            in_confs = f"(conf IN ({several}) OR split_part(coalesce(conf, ''), '>', 1) IN ({several}))"
            tests.append((f"message IN ({several})", self.names))
            tests.append((f"(kind IN ({_quoted(_CONFS)}) AND {in_confs})", (*self.names, *self.names)))
        if self.position is not None:
            tests.append(("position = ?", (self.position,)))
        values = [value for _, each in tests for value in each]
        found = self._found(select, " OR ".join(test for test, _ in tests), values, MOST_FOUND) if tests else []
        if not found and self.processes:
            found = self._found(select, f"process IN ({holes(self.processes)})", self.processes, 1)
        return found or self._found(select, "TRUE", (), 1)

    def _found(self, select: Select, test: str, values: Sequence[Any], at_most: int) -> list[Placed]:
        """The last of these."""
        sql = f"{_RUN} SELECT place, {_COLUMNS} FROM told WHERE {test} ORDER BY place DESC LIMIT {at_most}"
        return _placed(select(sql, (self.run, *values)))

    def weight(self, row: Row) -> float:
        is_theirs = 0.5 * (row.process in self.processes)
        is_there = self.position is not None and row.position == self.position
        if self.row is not None and identity(row) == self.row:
            return _ROW
        if row.message in self.names:
            return _MESSAGE + 0.25 * is_there + (is_theirs if self.row is None else 0.0)
        if row.kind in _CONFS:
            return _CONF + is_theirs if row.conf in self.names else _CONTEXT
        return _POSITION + is_theirs if is_there else _CONTEXT


def _parts(select: Select, run: str, found: Sequence[Placed]) -> list[list[Placed]]:
    """The rows around each piece of evidence; those that overlap are one part."""
    if not found:
        return []
    reach = max(4, MOST_ROWS // (2 * len(found)))
    ranges: list[tuple[int, int]] = []
    for place in sorted(each.place for each in found):
        first = max(1, place - reach)
        if ranges and first <= ranges[-1][1] + 1:
            first, _ = ranges.pop()
        ranges.append((first, place + reach))
    wanted = " OR ".join(f"place BETWEEN {first} AND {last}" for first, last in ranges)
    rows = _placed(select(f"{_RUN} SELECT place, {_COLUMNS} FROM told WHERE {wanted} ORDER BY place", (run,)))
    return [[each for each in rows if first <= each.place <= last] for first, last in ranges]


def _with_standing(select: Select, run: str, parts: Sequence[Sequence[Placed]]) -> Iterator[list[Row]]:
    """The parts, each told in order, after where everybody stood: the last configuration, birth or death of each.

    What was told already is not told again.
    """
    names = sorted({each.row.process for part in parts for each in part} - {WORLD})
    if not names:
        yield from (_ordered(part) for part in parts)
        return
    begins = ", ".join(f"({part[0].place})" for part in parts)
    sql = f"""{_RUN}
        SELECT begin, place, {_COLUMNS}
        FROM (SELECT *, row_number() OVER (PARTITION BY begin, process ORDER BY place DESC) AS back
              FROM told JOIN (VALUES {begins}) parts(begin) ON place < begin
              WHERE kind IN ({_quoted(_TURNS)}) AND process IN ({holes(names)})) turns
        WHERE back = 1
        ORDER BY begin, place
    """
    table = select(sql, (run, *names))
    standing = list(zip(table["begin"].to_pylist(), _placed(table), strict=True))
    known: set[int] = set()
    for part in parts:
        before = [each for begin, each in standing if begin == part[0].place and each.place not in known]
        known |= {each.place for each in (*before, *part)}
        is_apart = bool(before) and before[0].place + len(before) != part[0].place
        yield [*(each.row for each in before), *([_omitted()] if is_apart else []), *_ordered(part)]


def _placed(table: pa.Table) -> list[Placed]:
    return [Placed(*each) for each in zip(table["place"].to_pylist(), to_rows(table), strict=True)]


def _ordered(part: Sequence[Placed]) -> list[Row]:
    processes: dict[str, list[Row]] = {}
    for row in sorted((each.row for each in part), key=lambda row: (row.incarnation, row.local_index, row.time)):
        processes.setdefault(row.process, []).append(row)
    return merge(processes.values())


def _omitted() -> Row:
    return Row(WORLD, 0, 0, 0.0, OMITTED, detail="…")
