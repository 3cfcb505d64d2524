"""The audit: the rules of the specification over a trace of any size, on DuckDB or on Spark, with the same verdicts.

with opened(place, engine="spark") as audit:
    verdicts = audit.judge()
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from greenline.pipeline import session
from greenline.pipeline.auditing import SURVEY, Engine, Kind, Trace, check_fit, damaged, whole_trace
from greenline.pipeline.auditing_duckdb import DuckDb
from greenline.pipeline.causes import cause
from greenline.pipeline.java import NoSpark
from greenline.pipeline.report_counts import Counts, counted
from greenline.pipeline.report_trace import Select
from greenline.pipeline.verdicts import Verdict, Verdicts
from greenline.spec.judge import CERTIFICATE, Broken, Rule, broken_row, rules_named, tables_needed
from greenline.trace.tables import Report, nobody

__all__ = [
    "Audit",
    "Counts",
    "NoSpark",
    "NotJudged",
    "NothingToJudge",
    "Unreadable",
    "Verdict",
    "Verdicts",
    "of_table",
    "opened",
]

WITNESSES = 1_000
"""Violations of one rule that are kept, unless more are asked for; the rest is counted."""

SMALL = 5_000_000
"""Rows that DuckDB judges before Spark has warmed up."""

ENGINES = ("auto", "duckdb", "spark")

Heard = Callable[[str], None]
"""Is told what comes next."""


class NothingToJudge(Exception):
    """The trace has no rows."""


class Unreadable(Exception):
    """An engine stumbled over the trace, though the ends of its files looked well."""


class NotJudged(Unreadable):
    """It did, and not over the trace: its disk is full, say, or it was killed."""


class Audit:
    def __init__(self, engine: Engine, place: str, rows: int | None = None) -> None:
        """`rows`: so many there are, by those who have not asked the engine."""
        self._engine = engine
        self._place = place
        self._rows = rows

    def judge(self, rules: Sequence[str] = (), heard: Heard = nobody, most: int = WITNESSES) -> Verdicts:
        """Every rule of these names, or for each run those that fit it."""
        begun = time.monotonic()
        heard("what there is")
        names, rows = self._engine.rows(SURVEY)
        kinds = [Kind(**dict(zip(names, row, strict=True))) for row in rows]
        if not kinds:
            raise NothingToJudge(f"{self._place} has no rows, so there is nothing to judge")
        check_fit(kinds, self._place)
        seen = sum(kind.events for kind in kinds)
        if self._rows not in (None, seen):
            raise Unreadable(f"{self._engine.name} sees {seen} rows of {self._place}, where there are {self._rows}")
        self._engine.lay_out(seen, max(kind.longest for kind in kinds))
        preparing = time.monotonic() - begun
        found: dict[str, Verdict] = {}
        for chosen, fitting in _parts(kinds, rules):
            self._engine.narrow(fitting)
            preparing += self._prepare(chosen, heard)
            for rule in chosen:
                heard(rule.title)
                verdict = self._verdict(rule, most)
                before = found.get(rule.name)
                found[rule.name] = verdict if before is None else (before + verdict).at_most(most)
        heard("how much there is of what")
        self._engine.widen()
        counts = counted(self._engine.select)
        seconds = time.monotonic() - begun
        return Verdicts(self._engine.name, self._place, counts, list(found.values()), preparing, seconds)

    @property
    def select(self) -> Select:
        """Asks the trace, once it was judged."""
        return self._engine.select

    def _prepare(self, rules: Sequence[Rule], heard: Heard) -> float:
        """Make the tables that rules share."""
        begun = time.monotonic()
        for name, sql in tables_needed(rules):
            if name == CERTIFICATE:
                heard("the certificate of order")
                self._engine.certify()
            else:
                heard(f"table {name}")
                self._engine.make(name, sql)
        return time.monotonic() - begun

    def _verdict(self, rule: Rule, most: int) -> Verdict:
        begun = time.monotonic()
        names, rows = self._engine.rows(rule.sql, most + 1)
        count = len(rows)
        if count > most:
            first = (
                f"SELECT * FROM (\n{rule.sql}\n) broken ORDER BY {', '.join(f'{name} NULLS LAST' for name in names)}"
            )
            _, [(count,)] = self._engine.rows(f"SELECT count(*) FROM (\n{rule.sql}\n) broken")
            _, rows = self._engine.rows(first, most)
        broken: list[Broken] = [broken_row(rule, names, row) for row in sorted(rows, key=repr)]
        return Verdict(rule, broken, count, time.monotonic() - begun)


@contextmanager
def opened(
    place: Path,
    *,
    engine: str = "auto",
    master: str | None = None,
    memory: str = "3g",
    work: Path | None = None,
    report: Report = nobody,
) -> Iterator[Audit]:
    """The trace at this place, for an engine: `duckdb`, `spark`, or `auto`, which takes DuckDB unless there is much.

    `work` is where tables are kept meanwhile; all machines of a Spark cluster must reach it, as they must the trace.
    """
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    if engine == "spark" or (engine == "auto" and master is not None):
        session.check(master, memory)  # before streams are converted, which may take long
    with tempfile.TemporaryDirectory(
        prefix="greenline-audit-", dir=work and work.resolve(), ignore_cleanup_errors=True
    ) as made:
        here = Path(made)
        if found := session.PATTERN.search(made):
            raise Unreadable(f"{found[0]} in {made} would be a pattern: choose another directory to keep tables in")
        trace = whole_trace(place.absolute(), here, report)
        is_much = trace.rows > SMALL and _has_spark(memory, report)
        if engine == "spark" or (engine == "auto" and (master is not None or is_much)):
            from greenline.pipeline.auditing_spark import Spark

            spark = session.spark("greenline audit", master=master, memory=memory)
            with _stumbling(Spark, place, trace), closing(Spark(spark, trace.files, here)) as on_spark:
                yield Audit(on_spark, str(place), trace.rows)
        else:
            with _stumbling(DuckDb, place, trace), closing(DuckDb(trace.files, here)) as on_duckdb:
                yield Audit(on_duckdb, str(place), trace.rows)


def _has_spark(memory: str, report: Report) -> bool:
    """Who has none is served all the same: DuckDB takes what this machine can hold on its disk."""
    try:
        session.check(memory=memory)
    except NoSpark as reason:
        report(f"on DuckDB, since there is no Spark: {reason}")
        return False
    return True


@contextmanager
def _stumbling(engine: type[Engine], place: Path, trace: Trace) -> Iterator[None]:
    """Says where it was, and why."""
    try:
        yield
    except engine.errors as error:
        said = f"{engine.name} could not judge {place}"
        if over := damaged(trace):
            raise Unreadable(f"{said}: {over}") from error
        raise NotJudged(f"{said}: {session.why_lost(error) or cause(error).splitlines()[0]}") from error


@contextmanager
def of_table(trace: pa.Table, name: str) -> Iterator[Audit]:
    """A trace in memory, on DuckDB."""
    with tempfile.TemporaryDirectory(prefix="greenline-audit-") as work:
        engine = DuckDb(trace, Path(work))
        try:
            yield Audit(engine, name)
        finally:
            engine.close()


def _parts(kinds: Sequence[Kind], rules: Sequence[str]) -> Iterator[tuple[list[Rule], str | None]]:
    """Rules, and a query for the runs to judge by them, or None for all."""
    if rules:
        yield rules_named(rules), None
        return
    for kind in kinds:
        yield rules_named(kind.folders), None if len(kinds) == 1 else kind.fitting
