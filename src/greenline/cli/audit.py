"""`greenline audit`: judge traces by the rules of the specification."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from greenline.cli.say import Misuse, Status, as_json, aside, line, progress
from greenline.spec.judge import Broken, Judge, Rule, folders_for, rules_named
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
    chosen = _rules(rules, trace)
    begun = time.monotonic()
    judge = Judge(dict.fromkeys(rule.folder for rule in chosen), threads=os.cpu_count() or 1)
    judge.prepare(trace)
    prepared = time.monotonic() - begun
    verdicts: list[tuple[Rule, list[Broken], float]] = []
    with progress("judging") as bar:
        task = bar.add_task("", total=len(chosen))
        for rule in chosen:
            begun = time.monotonic()
            broken = judge.broken_by(rule)
            verdicts.append((rule, broken, time.monotonic() - begun))
            bar.advance(task)
    if json:
        as_json(_json(trace, verdicts, prepared))
    else:
        _report(place, trace, verdicts, prepared)
    raise typer.Exit(Status.BROKEN if any(broken for _, broken, _ in verdicts) else Status.OK)


def _rules(names: str, trace: pa.Table) -> list[Rule]:
    wanted = [name.strip() for name in names.split(",") if name.strip()] or folders_for(trace)
    try:
        return rules_named(wanted)
    except ValueError as error:
        raise Misuse(str(error)) from None


def _report(place: Path, trace: pa.Table, verdicts: list[tuple[Rule, list[Broken], float]], prepared: float) -> None:
    runs = trace.column("run").unique()
    seconds = prepared + sum(took for _, _, took in verdicts)
    line(f"{trace.num_rows} rows of {len(runs)} runs, {len(verdicts)} rules, {seconds:.1f} s")
    for rule, broken, took in verdicts:
        verdict = f"BROKEN {len(broken):>6}" if broken else "holds        "
        line(f"  {rule.title:<52} {verdict} {took:>8.3f} s")
    for rule, broken, _ in verdicts:
        if broken:
            _explain(place, rule, broken)
    if not any(broken for _, broken, _ in verdicts):
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


def _json(trace: pa.Table, verdicts: list[tuple[Rule, list[Broken], float]], prepared: float) -> dict[str, Any]:
    return {
        "rows": trace.num_rows,
        "runs": len(trace.column("run").unique()),
        "prepare_seconds": round(prepared, 6),
        "rules": [
            {
                "rule": rule.name,
                "broken": len(broken),
                "seconds": round(took, 6),
                "witnesses": [{"run": e.run, "because": e.because, "witness": e.witness} for e in broken[:SHOWN]],
            }
            for rule, broken, took in verdicts
        ],
    }
