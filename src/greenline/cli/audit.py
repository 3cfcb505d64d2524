"""`greenline audit`: judge traces by the rules of the specification, on DuckDB or on Spark."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from greenline.cli.say import Misuse, Status, as_json, aside, heed_termination, hush, line, out, progress
from greenline.pipeline.audit import ENGINES, NoSpark, NothingToJudge, NotJudged, Unreadable, Verdict, Verdicts, opened
from greenline.pipeline.following import Round, follow
from greenline.pipeline.report import write_report
from greenline.pipeline.report_trace import Select
from greenline.spec.judge import Broken, rules_named
from greenline.trace.stream import SUFFIX
from greenline.trace.tables import PARQUET, Report

SHOWN = 5
"""Witnesses that are shown of one rule."""
SURE_AFTER = 2
"""Rounds of who follows."""


def audit(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="A trace file, or a directory of them.")],
    rules: Annotated[
        str, typer.Option(help="Only these: folders (evs) or rules (evs/3_self_delivery), comma between.")
    ] = "",
    engine: Annotated[
        str, typer.Option(help="duckdb, spark, or auto: DuckDB, unless there is much, or a master is named.")
    ] = "auto",
    master: Annotated[str | None, typer.Option(help="Spark's master; without one, all cores of this machine.")] = None,
    memory: Annotated[
        str, typer.Option(help="For Spark's driver, which does all the work if there is no master.")
    ] = "3g",
    work: Annotated[
        Path | None,
        typer.Option(help="Where tables are kept meanwhile. Every machine of a Spark cluster must reach it."),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the broken rules with witnesses to this Parquet file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report for people here: one HTML file, with diagrams of violations.")
    ] = None,
    follows: Annotated[
        bool, typer.Option("--follow", help="Beside a live cluster: judge its traces again and again, until Ctrl-C.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
) -> None:
    """Judge every run in a trace by the rules of the specification.

    Without --rules, the rules that fit what the trace holds. A broken rule is shown with its witness and a because.
    Both engines come to the same verdicts.
    """
    named = _checked(place, rules, engine, master, (report, table), work)
    hush()
    heed_termination()
    begun = datetime.now(UTC)
    kept = _Kept(table, report)

    how: _How = {"engine": engine, "master": master, "memory": memory, "work": work}
    try:
        if follows:
            status = _follow(
                place, kept, json, lambda heard: follow(place, rules=named, keep=kept, report=heard, **how)
            )
        else:
            with opened(place, report=aside, **how) as judge, progress("judging") as bar:
                task = bar.add_task("", total=None)
                found = judge.judge(named, lambda _: bar.advance(task))
                kept(found, begun, judge.select)
            if json:
                as_json(_json(found))
            else:
                _report(place, found)
            status = _status(bool(found.broken), is_well=kept.is_well)
    except NotJudged as error:
        aside(f"greenline: {error}")
        raise typer.Exit(Status.FAILED) from None
    except (NothingToJudge, Unreadable, NoSpark) as error:
        raise Misuse(str(error)) from None
    raise typer.Exit(status)


def _status(has_broken: bool, *, is_well: bool) -> Status:
    if has_broken:
        return Status.BROKEN
    return Status.OK if is_well else Status.FAILED


class _Kept:
    """The table and the report. A disk that is full, say, does not keep the verdicts from being told."""

    def __init__(self, table: Path | None, report: Path | None) -> None:
        self._table = table
        self._report = report
        self.is_well = True

    def __call__(self, found: Verdicts, begun: datetime, select: Select) -> None:
        try:
            if self._table is not None:
                found.write(self._table)
            if self._report is not None:
                write_report(self._report, found, begun, select)
        except OSError as error:
            self.is_well = False
            aside(f"greenline: what was to be kept could not be written: {error}")
        else:
            self.is_well = True


class _How(TypedDict):
    engine: str
    master: str | None
    memory: str
    work: Path | None


def _checked(
    place: Path, rules: str, engine: str, master: str | None, made: Sequence[Path | None], work: Path | None
) -> list[str]:
    """All that can be wrong before anything is read; then the names of rules."""
    if engine not in ENGINES:
        raise Misuse(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    if engine == "duckdb" and master is not None:
        raise Misuse("--master is Spark's, and DuckDB works here: leave out one of both")
    named = [name.strip() for name in rules.split(",") if name.strip()]
    try:
        rules_named(named)
    except ValueError as error:
        raise Misuse(str(error)) from None
    if rules and not named:
        raise Misuse(f"--rules {rules} names none: leave it out, and all that fit are judged")
    kept = [path.resolve() for path in made if path is not None]
    if len(set(kept)) < len(kept):
        raise Misuse(f"the table and the report cannot both be {kept[0]}: give each a name of its own")
    for path in filter(None, made):
        if path.is_dir():
            raise Misuse(f"cannot write {path}: it is a directory, and a file is to be named")
        if path.resolve() == place.resolve():
            raise Misuse(f"cannot write {path}: it is the trace itself; give it another name")
        if not path.parent.is_dir():
            raise Misuse(f"cannot write {path}: there is no directory {path.parent}")
        if path.suffix in (SUFFIX, PARQUET) and place.resolve() in path.resolve().parents:
            raise Misuse(
                f"cannot write {path}: it would be a part of the trace in {place}; give it another place or name"
            )
        if not os.access(path.parent, os.W_OK):
            raise Misuse(f"cannot write {path}: nothing may be written into {path.parent} by this user")
    if work is not None and not work.is_dir():
        raise Misuse(f"cannot keep tables in {work}: there is no such directory")
    if work is not None and place.is_dir() and work.resolve().is_relative_to(place.resolve()):
        raise Misuse(f"cannot keep tables in {work}: they would be a part of the trace in {place}")
    return named


def _follow(place: Path, kept: _Kept, is_json: bool, rounds: Callable[[Report], Iterator[Round]]) -> Status:
    """Tell each violation once, when it is sure, as a line, until Ctrl-C."""
    has_broken, rounds_done, unread = False, 0, list[str]()

    def heard(said: str) -> None:
        unread.append(said)
        aside(said)

    try:
        for each in rounds(heard):
            unread.clear()
            rounds_done += 1
            counts, now = each.verdicts.counts, datetime.now(UTC).strftime("%H:%M:%S")
            aside(f"{now}  {counts.events} rows of {counts.runs} runs judged in {each.verdicts.seconds:.1f} s")
            for broken in each.confirmed:
                has_broken = True
                if is_json:
                    out.print(dumps({"rule": broken.rule, **_witness(broken)}), markup=False)
                else:
                    line(f"{now}  FAIL  {broken.run}: {broken}")
    except KeyboardInterrupt:
        pass
    if has_broken and not is_json:
        line(f"the whole of it: greenline audit {shlex.quote(str(place))}")
    if rounds_done < SURE_AFTER:
        aside(f"greenline: it was over before {place} was judged twice, so nothing of it is sure")
    return _status(has_broken, is_well=kept.is_well and not unread and rounds_done >= SURE_AFTER)


def _report(place: Path, found: Verdicts) -> None:
    counts, rules = found.counts, found.verdicts
    line(f"{counts.events} rows of {counts.runs} runs, {len(rules)} rules, {found.seconds:.1f} s on {found.engine}")
    line(f"  {'what rules share':<66} {found.preparing:>8.3f} s")
    for each in rules:
        verdict = f"BROKEN {each.count:>6}" if each.count else "holds        "
        line(f"  {each.rule.title:<52} {verdict} {each.seconds:>8.3f} s")
    for each in found.broken:
        _explain(place, each)
    if not found.broken:
        line("ok  every rule holds")


def _explain(place: Path, verdict: Verdict) -> None:
    rule, broken = verdict.rule, verdict.broken
    line()
    line(f"{rule.title}: {rule.claim}")
    for each in broken[:SHOWN]:
        seen = ", ".join(f"{name} {value}" for name, value in each.witness.items() if value is not None)
        line(f"  {each.run}: {seen}")
        line(f"    because {each.because}")
    if verdict.count > SHOWN:
        line(f"  and {verdict.count - SHOWN} more")
    line(f"  the story: greenline trace story {shlex.quote(str(place))} --run {shlex.quote(broken[0].run)}")


def _json(found: Verdicts) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "rows": found.counts.events,
        "runs": found.counts.runs,
        "preparing": round(found.preparing, 6),
        "seconds": round(found.seconds, 6),
        "rules": [
            {
                "rule": each.rule.name,
                "broken": each.count,
                "seconds": round(each.seconds, 6),
                "witnesses": [_witness(one) for one in each.broken],
            }
            for each in found.verdicts
        ],
    }


def _witness(broken: Broken) -> dict[str, Any]:
    return {"run": broken.run, "because": broken.because, "witness": broken.witness}
