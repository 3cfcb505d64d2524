"""`greenline simulate`: run a protocol under faults, many seeds on all cores, and judge every run."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from greenline.cli.say import Misuse, Status, as_json, line, progress
from greenline.cli.verdicts import (
    again,
    as_object,
    command,
    explain_first,
    run_object,
    status_of,
    summary,
    tell_run,
    verdict,
)
from greenline.simulation.divergence import diverges
from greenline.simulation.farm import BATCH, Batch, Farm, Judging, Report, RunFailed, batches
from greenline.simulation.plan import Plan, draw_plan
from greenline.simulation.play import End
from greenline.simulation.profiles import PROFILES
from greenline.simulation.scenarios.every import SCENARIOS
from greenline.simulation.scenarios.stage import what_goes_wrong
from greenline.simulation.schedule import COMINGS, KINDS
from greenline.simulation.subjects import CORES, SUBJECTS, Subject
from greenline.simulation.wishes import wish_of

EXAMPLES = """\b
Examples:
  greenline simulate ring --nodes 5 --seeds 0:1000 --profile storm
  greenline simulate ring --seeds 17 --profile storm --story
  greenline simulate noticeboard --nodes 5 --profile storm --mutants
  greenline simulate engine --over ring --nodes 5 --profile storm
"""
MOST_NODES = 64
A_FEW = 4
"""Runs at a time where the first failure ends it: one that is stuck takes long."""
COMPARED = 2
"""Runs that are played in two processes even where that was not asked for."""


def simulate(
    core: Annotated[str, typer.Argument(metavar="CORE", help=f"The protocol: {', '.join(CORES)}.")],
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="How many processes.")] = 3,
    seeds: Annotated[str, typer.Option(help="One seed, or A:B for A up to but not including B.")] = "0:100",
    profile: Annotated[
        str | None,
        typer.Option(help=f"Which faults come together: {', '.join(PROFILES)}.", show_default="calm; mutants: storm"),
    ] = None,
    only: Annotated[str, typer.Option(help=f"Only these kinds of fault, comma between: {', '.join(KINDS)}.")] = "",
    trace: Annotated[Path | None, typer.Option(help="Leave the trace of every run in this directory.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
    story: Annotated[bool, typer.Option("--story", help="Tell the run of a single seed.")] = False,
    until: Annotated[int | None, typer.Option(help="Tell the story up to this line.")] = None,
    shrinking: Annotated[bool, typer.Option("--shrink/--no-shrink", help="Make the first failing run short.")] = True,
    twice: Annotated[bool, typer.Option("--twice", help="Play each seed in two processes and compare.")] = False,
    mutant: Annotated[str | None, typer.Option(help="Run a protocol with this seeded bug.")] = None,
    mutants: Annotated[bool, typer.Option("--mutants", help="Run every seeded bug; each must be caught.")] = False,
    over: Annotated[
        str | None, typer.Option(help="What the engine runs over: adversary, ring.", show_default="adversary")
    ] = None,
    tries: Annotated[int, typer.Option(help="How many seeds a seeded bug may escape before that is a failure.")] = 200,
    plan: Annotated[Path | None, typer.Option(help="Play a plan that was kept by an earlier run.")] = None,
    soak: Annotated[float | None, typer.Option(help="Go on with new seeds for so many seconds.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; all cores by default.")] = None,
) -> None:
    """Run a protocol in virtual time under faults, and judge every run by its rules.

    A run is fully decided by its seed. After the faults the network heals, and the run goes on until it is quiet.
    """
    subject = _subject(core, over)
    kinds = _kinds(only, subject)
    if kinds and profile is not None:
        raise Misuse(f"--only {only} and --profile {profile}: single kinds of fault, or a profile of them, not both")
    profile = profile or ("storm" if mutants and not kinds else "calm")
    _check(subject, nodes, profile, mutant, workers, soak)
    first, end = _seeds(seeds)
    farm_size = workers or os.cpu_count() or 1

    def draw(seed: int, wrong: str | None = mutant) -> Plan:
        return draw_plan(subject, seed, nodes, profile, kinds, wrong)

    if tries < 1:
        raise Misuse(f"--tries {tries}: at least one seed must be tried")
    if mutants:
        raise typer.Exit(_catch_mutants(subject, draw, range(first, first + tries), json))
    if plan is not None:
        how = shlex.join([*command(subject), "--plan", str(plan), *(["--twice"] if twice else [])])
        kept = _read_plan(plan)
        if kept.core != subject.name:
            raise Misuse(
                f"{plan} is a plan of {kept.core}, not of {subject.name}: {shlex.join(command(SUBJECTS[kept.core]))}"
            )
        if mutant is not None and kept.mutant != mutant:
            raise Misuse(f"{plan} says which seeded bug it is played with; leave --mutant out")
        raise typer.Exit(_play_one(kept, trace, json, until, twice, how))
    if story or until is not None:
        if end - first != 1:
            raise Misuse(f"a story is of one seed, but --seeds {seeds} names {end - first}; ask for one of them")
        if soak is not None:
            raise Misuse("a story is of one run, and a soak of many; ask for one of them")
        raise typer.Exit(_play_one(draw(first), trace, json, until, twice, again(draw(first), twice)))
    if trace is not None:
        _make_directory(trace)
    wanted = count(first) if soak is not None else range(first, end)
    begun = time.monotonic()
    total = None if soak is not None else end - first
    results = _run_all((draw(seed) for seed in wanted), total, trace, farm_size, twice, begun, soak)
    seconds = time.monotonic() - begun
    if json:
        as_json(as_object(subject, nodes, profile, kinds, mutant, results, seconds))
    else:
        summary(subject, nodes, profile, kinds, results, seconds)
        explain_first(results, shrinking, trace)
    raise typer.Exit(status_of(results))


# What was asked for, checked.


def _subject(core: str, over: str | None) -> Subject:
    if core not in CORES:
        raise Misuse(f"there is no protocol {core!r} to simulate; there is {', '.join(CORES)}")
    choices = CORES[core]
    if over is None:
        return choices[0]
    for subject in choices:
        if subject.over == over:
            return subject
    if choices[0].over is None:
        raise Misuse(f"--over {over}: {core} is simulated as it is; --over is for {' '.join(_with_a_choice())}")
    raise Misuse(f"--over {over}: {core} runs over {', '.join(str(subject.over) for subject in choices)}")


def _with_a_choice() -> list[str]:
    return [core for core, choices in CORES.items() if choices[0].over is not None]


def _check(
    subject: Subject, nodes: int, profile: str, mutant: str | None, workers: int | None, soak: float | None
) -> None:
    if profile not in PROFILES:
        raise Misuse(f"there is no profile {profile!r}; choose one of {', '.join(PROFILES)}")
    if not 2 <= nodes <= MOST_NODES:
        raise Misuse(f"--nodes {nodes}: a simulation has 2 to {MOST_NODES} processes")
    if mutant is not None and mutant not in subject.mutants:
        raise Misuse(f"{subject.name} has no mutant {mutant!r}; it has {', '.join(subject.mutants)}")
    if workers is not None and workers < 1:
        raise Misuse(f"--workers {workers}: at least one must work")
    if soak is not None and not soak > 0:
        raise Misuse(f"--soak {soak:g}: say for how many seconds, more than none")


def _kinds(only: str, subject: Subject) -> tuple[str, ...]:
    kinds = tuple(kind.strip() for kind in only.split(",") if kind.strip())
    for kind in kinds:
        if kind not in KINDS:
            raise Misuse(f"there is no fault {kind!r}; --only takes {', '.join(KINDS)}")
        if kind in COMINGS and not subject.comes_and_goes:
            raise Misuse(f"--only {kind}: in {subject.name} nobody comes and goes")
    return kinds


def _seeds(text: str) -> tuple[int, int]:
    first, colon, end = text.partition(":")
    try:
        begin = int(first)
        stop = int(end) if colon else begin + 1
    except ValueError:
        raise Misuse(f"--seeds {text!r} is no seed and no range; write 17, or 0:1000") from None
    if begin < 0 or stop <= begin:
        raise Misuse(f"--seeds {text!r} names no seed; the range A:B holds A up to but not including B, from 0 on")
    return begin, stop


def _read_plan(path: Path) -> Plan:
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise Misuse(f"cannot read the plan {path}: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise Misuse(f"{path} is no plan of a simulation: {error}") from None
    if plan.core not in SUBJECTS:
        raise Misuse(f"{path}: there is no protocol {plan.core!r} to simulate; there is {', '.join(SUBJECTS)}")
    subject = SUBJECTS[plan.core]
    _check(subject, len(plan.names), plan.profile, plan.mutant, None, None)
    if strangers := plan.strangers():
        raise Misuse(f"{path} names a process that it does not have: {' '.join(strangers)}")
    if subject.workload is not None:
        for request in plan.requests:
            try:
                wish_of(request)
            except ValueError as error:
                raise Misuse(f"{path}: {error}") from None
    return plan


def _make_directory(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"cannot make the directory {place}: {error.strerror}") from None
    if any(place.iterdir()):
        raise Misuse(f"{place} is not empty; give --trace a new directory, so that runs do not mix")


# One run, told.


def _play_one(plan: Plan, trace: Path | None, json: bool, until: int | None, twice: bool, how: str) -> Status:
    if trace is not None:
        _make_directory(trace)
    batch = next(batches([plan], trace))
    (report,) = Judging().reports(Batch(batch.plans, batch.trace, keep_rows=True))
    if twice:
        with Farm(2) as farm:
            found = diverges(farm, plan)
        report.broken.extend([found] if found is not None else [])
    if json:
        as_json({"runs": [run_object(report)]})
    else:
        tell_run(report, until)
        verdict(report, how)
    return status_of([report])


# Many runs.


def _run_all(
    plans: Iterable[Plan],
    total: int | None,
    trace: Path | None,
    workers: int,
    twice: bool,
    begun: float,
    soak: float | None,
) -> list[Report]:
    """Every run, the first ones in two processes: chance that leaks from Python shows in a few runs already."""
    results: list[Report] = []
    plans = iter(_for_so_long(plans, begun, soak))
    size = BATCH if total is None else max(1, min(BATCH, total // (4 * workers)))
    with Farm(2 if twice else max(2, workers)) as farm, progress("simulating") as bar:
        task = bar.add_task("", total=total)
        first = batches(islice(plans, COMPARED), trace)
        rest = batches(plans, trace, size)
        todo = _compared(farm, chain(first, rest)) if twice else chain(_compared(farm, first), farm.each(rest))
        try:
            for reports in todo:
                results += reports if total is not None else map(_light, reports)
                bar.advance(task, len(reports))
                if soak is not None and any(report.broken or report.end is End.STUCK for report in reports):
                    break
        except KeyboardInterrupt:
            if soak is None:
                raise  # a soak is over when somebody says so, and what it found is worth telling
    return sorted(results, key=lambda report: report.plan.seed)


def _light(report: Report) -> Report:
    """A report of a run that went well, without what nobody will ask for: a soak keeps a great many."""
    if report.broken or report.end is End.STUCK:
        return report
    return replace(report, plan=msgspec.structs.replace(report.plan, schedule=(), requests=()))


def _for_so_long(plans: Iterable[Plan], begun: float, soak: float | None) -> Iterator[Plan]:
    for plan in plans:
        if soak is not None and time.monotonic() - begun > soak:
            return
        yield plan


def _compared(farm: Farm, todo: Iterable[Batch]) -> Iterator[list[Report]]:
    """Every batch in every worker; a run that differs between them breaks the rule that seeds decide."""
    for batch in todo:
        first, *others = farm.everywhere(batch)
        for place, report in enumerate(first):
            if any(other[place].trace_hash != report.trace_hash for other in others):
                found = diverges(farm, report.plan)
                assert found is not None, "it differed a moment ago"
                report.broken.append(found)
        yield first


# Seeded bugs.


def _catch_mutants(subject: Subject, draw: Callable[[int, str], Plan], seeds: range, json: bool) -> Status:
    """Every mutant must be caught: by a scenario, or by some seed (a rule, a crash, being stuck, another run)."""
    caught = []
    with progress("seeded bugs") as bar:
        task = bar.add_task("", total=len(subject.mutants))
        for name, mutant in subject.mutants.items():
            seed = None
            if mutant.scenario is not None:
                by = what_goes_wrong(SCENARIOS[mutant.scenario], name)
            else:
                seed, by = _first_catch(draw(seed, name) for seed in seeds)
            found = {"name": name, "caught": by is not None, "seed": seed, "scenario": mutant.scenario, "by": by}
            caught.append({**found, "mistake": mutant.mistake})
            bar.advance(task)
    if json:
        as_json({"core": subject.name, "mutants": caught})
    else:
        for each in caught:
            seeded = "in one of its runs" if each["seed"] is None else f"with seed {each['seed']}"
            where = f"in {each['scenario']}" if each["scenario"] else seeded
            found_by = f"caught by {each['by']} {where}" if each["caught"] else "NOT CAUGHT"
            line(f"{each['name']:<34} {found_by}")
    return Status.OK if all(each["caught"] for each in caught) else Status.BROKEN


def _first_catch(plans: Iterable[Plan]) -> tuple[int | None, str | None]:
    """In a farm of its own: a run that fails takes it along."""
    with Farm(2) as farm:
        try:
            for reports in _compared(farm, batches(plans, None, A_FEW)):
                for report in reports:
                    if report.broken:
                        return report.plan.seed, report.broken[0].rule
                    if report.end is End.STUCK:
                        return report.plan.seed, "stuck"
        except RunFailed as crash:
            return None, f"a crash ({crash})"
    return None, None
