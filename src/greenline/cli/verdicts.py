"""Verdicts: what runs came to, for people and for programs."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from greenline.cli.say import Status, aside, line, progress
from greenline.simulation.divergence import RULE as DIVERGED
from greenline.simulation.failure import made_short
from greenline.simulation.farm import Report
from greenline.simulation.plan import Plan
from greenline.simulation.play import End
from greenline.simulation.shrink import steps
from greenline.simulation.subjects import SUBJECTS, Subject
from greenline.spec.judge import Broken
from greenline.trace.story import tell


def status_of(results: list[Report]) -> Status:
    if any(report.broken for report in results):
        return Status.BROKEN
    return Status.STUCK if any(report.end is End.STUCK for report in results) else Status.OK


def summary(
    subject: Subject, nodes: int, profile: str, kinds: tuple[str, ...], results: list[Report], seconds: float
) -> None:
    what = ",".join(kinds) or profile
    line(f"{subject.name}   {nodes} processes   {what}   {len(results)} runs in {seconds:.1f} s")
    runs_with: Counter[str] = Counter()
    in_all: Counter[str] = Counter()
    for report in results:
        runs_with.update(report.counts.keys())
        in_all.update(report.counts)
    for name, total in sorted(in_all.items()):
        line(f"  {name:<34}{total:>12}   in {runs_with[name] / len(results):>5.0%} of the runs")
    broken = sum(bool(report.broken) for report in results)
    stuck = sum(report.end is End.STUCK for report in results)
    rate = len(results) / seconds * 3600 if seconds else 0
    line(f"  {'seeds an hour at this rate':<34}{rate:>12.0f}")
    is_well = not broken and not stuck
    line(
        "ok  no rule broken, every run fell quiet"
        if is_well
        else f"FAIL  {broken} runs broke a rule, {stuck} are stuck"
    )


def explain_first(results: list[Report], shrinking: bool, trace: Path | None) -> None:
    """The first failing run: what broke, how to see it again, and the shortest plan that still fails so."""
    failing = next((report for report in results if report.broken or report.end is End.STUCK), None)
    if failing is None:
        return
    line()
    verdict(failing, again(failing.plan, any(each.rule == DIVERGED for each in failing.broken)))
    if shrinking:
        with progress("making it short") as bar:
            task = bar.add_task("", total=None)
            rule = failing.broken[0].rule if failing.broken else None
            short = made_short(failing.plan, rule, lambda: bar.advance(task))
        _tell_short(short, trace)


def _tell_short(report: Report, trace: Path | None) -> None:
    short = report.plan
    line()
    line(f"made short: {len(short.schedule) + len(short.requests)} steps among {' '.join(short.everybody)}")
    for step in steps(short):
        line(f"  {step}")
    line()
    tell_run(report)
    _fail_lines(report.broken)
    if trace is None:
        aside("to keep the short plan, run it again with --trace DIR")
    else:
        kept = trace / f"{short.run}.plan.json"
        kept.write_bytes(msgspec.json.format(msgspec.json.encode(short), indent=1))
        twice = " --twice" if any(each.rule == DIVERGED for each in report.broken) else ""
        line(f"again: {shlex.join(command(SUBJECTS[short.core]))} --plan {shlex.quote(str(kept))}{twice}")


def tell_run(report: Report, until: int | None = None) -> None:
    line(_head(report))
    for each in tell(report.rows):
        if until is not None and each.number > until:
            break
        line(each)


def _head(report: Report) -> str:
    counts = report.counts
    numbers = [f"seed {report.plan.seed}", f"{len(report.plan.everybody)} processes", f"{counts['steps']} steps"]
    numbers += [
        f"{counts.get(kind, 0)} {name}" for kind, name in (("faults: partition", "partitions"), ("crash", "crashes"))
    ]
    return "   ".join(numbers)


def verdict(report: Report, how: str) -> None:
    _fail_lines(report.broken)
    if report.end is End.STUCK:
        line("STUCK  something still changes, long after the network has healed")
    if not report.broken and report.end is End.QUIET:
        line("ok  no rule broken, and the run fell quiet")
    else:
        line(f"again: {how}")


def _fail_lines(broken: list[Broken]) -> None:
    """One witness for each rule, and how many more there are."""
    witnesses: dict[str, list[Broken]] = {}
    for each in broken:
        witnesses.setdefault(each.rule, []).append(each)
    for first, *more in witnesses.values():
        line(f"FAIL  {first}" + (f", and {len(more)} more" if more else ""))


def command(subject: Subject) -> list[str]:
    """How this subject is asked for."""
    return ["greenline", "simulate", subject.core, *(["--over", subject.over] if subject.over else [])]


def again(plan: Plan, twice: bool) -> str:
    """The command that shows a run again, which was drawn from its seed."""
    words = [*command(SUBJECTS[plan.core]), "--nodes", str(len(plan.names))]
    words += ["--only", ",".join(plan.only)] if plan.only else ["--profile", plan.profile]
    words += ["--mutant", plan.mutant] if plan.mutant else []
    words += ["--twice"] if twice else []
    return shlex.join([*words, "--seeds", str(plan.seed), "--story"])


def as_object(
    subject: Subject,
    nodes: int,
    profile: str,
    kinds: tuple[str, ...],
    mutant: str | None,
    results: list[Report],
    seconds: float,
) -> dict[str, Any]:
    return {
        "core": subject.name,
        "nodes": nodes,
        "profile": profile,
        "only": list(kinds),
        "mutant": mutant,
        "seconds": round(seconds, 3),
        "runs": [run_object(report) for report in results],
    }


def run_object(report: Report) -> dict[str, Any]:
    return {
        "seed": report.plan.seed,
        "run": report.plan.run,
        "trace_hash": report.trace_hash,
        "end": report.end.value,
        "broken": [_broken_json(each) for each in report.broken],
        "counts": report.counts,
    }


def _broken_json(broken: Broken) -> dict[str, Any]:
    return {"rule": broken.rule, "because": broken.because, "witness": broken.witness}
