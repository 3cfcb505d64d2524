"""`greenline audit`: judge traces by the rules of the specification."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from greenline.cli.say import Misuse, Status, as_json, aside, line, progress
from greenline.spec.judge import Broken, Judge, Rule, folders_by_run, rules_named
from greenline.trace.tables import load

SHOWN = 5
"""Witnesses that are shown of one rule."""


def audit(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="A trace file, or a directory of them.")],
    rules: Annotated[
        str, typer.Option(help="Only these: folders (evs) or rules (evs/3_self_delivery), comma between.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
) -> None:
    """Judge every run in a trace by the rules of the specification.

    Without --rules, the rules that fit what the trace holds. A broken rule is shown with its witness and a because.
    """
    trace = load(place, aside)
    if not trace.num_rows:
        raise Misuse(f"{place} has no rows, so there is nothing to judge")
    begun = time.monotonic()
    verdicts: dict[str, Verdict] = {}
    with progress("judging") as bar:
        task = bar.add_task("", total=None)
        for names, part in parts(trace, rules):
            for each in judged(names, part):
                bar.advance(task)
                verdicts[each.rule.name] = verdicts[each.rule.name] + each if each.rule.name in verdicts else each
    found = list(verdicts.values())
    seconds = time.monotonic() - begun
    if json:
        as_json(_json(trace, found, seconds))
    else:
        _report(place, trace, found, seconds)
    raise typer.Exit(Status.BROKEN if any(each.broken for each in found) else Status.OK)


@dataclass(frozen=True)
class Verdict:
    """What one rule says."""

    rule: Rule
    broken: list[Broken]
    seconds: float

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(self.rule, self.broken + other.broken, self.seconds + other.seconds)


def parts(trace: pa.Table, rules: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Rules, and the runs to judge by them: those that were named, or for each run those that fit it."""
    named = tuple(name.strip() for name in rules.split(",") if name.strip())
    if named:
        yield named, trace
        return
    fitting: dict[tuple[str, ...], list[str]] = {}
    for run, folders in folders_by_run(trace).items():
        fitting.setdefault(folders, []).append(run)
    for folders, runs in sorted(fitting.items()):
        yield folders, trace.filter(pc.is_in(trace.column("run"), pa.array(runs)))


def judged(names: tuple[str, ...], trace: pa.Table) -> Iterator[Verdict]:
    """Rule by rule."""
    try:
        chosen = rules_named(names)
    except ValueError as error:
        raise Misuse(str(error)) from None
    judge = Judge(dict.fromkeys(rule.folder for rule in chosen), threads=os.cpu_count() or 1)
    judge.prepare(trace)
    for rule in chosen:
        begun = time.monotonic()
        broken = judge.broken_by(rule)
        yield Verdict(rule, broken, time.monotonic() - begun)


def _report(place: Path, trace: pa.Table, verdicts: list[Verdict], seconds: float) -> None:
    runs = trace.column("run").unique()
    line(f"{trace.num_rows} rows of {len(runs)} runs, {len(verdicts)} rules, {seconds:.1f} s")
    for each in verdicts:
        verdict = f"BROKEN {len(each.broken):>6}" if each.broken else "holds        "
        line(f"  {each.rule.title:<52} {verdict} {each.seconds:>8.3f} s")
    for each in verdicts:
        if each.broken:
            _explain(place, each.rule, each.broken)
    if not any(each.broken for each in verdicts):
        line("ok  every rule holds")


def _explain(place: Path, rule: Rule, broken: list[Broken]) -> None:
    line()
    line(f"{rule.title}: {rule.claim}")
    for each in broken[:SHOWN]:
        seen = ", ".join(f"{name} {value}" for name, value in each.witness.items() if value is not None)
        line(f"  {each.run}: {seen}")
        line(f"    because {each.because}")
    if len(broken) > SHOWN:
        line(f"  and {len(broken) - SHOWN} more")
    line(f"  the story: greenline trace story {shlex.quote(str(place))} --run {shlex.quote(broken[0].run)}")


def _json(trace: pa.Table, verdicts: list[Verdict], seconds: float) -> dict[str, Any]:
    return {
        "rows": trace.num_rows,
        "runs": len(trace.column("run").unique()),
        "seconds": round(seconds, 6),
        "rules": [
            {
                "rule": each.rule.name,
                "broken": len(each.broken),
                "seconds": round(each.seconds, 6),
                "witnesses": [
                    {"run": one.run, "because": one.because, "witness": one.witness} for one in each.broken[:SHOWN]
                ],
            }
            for each in verdicts
        ],
    }
