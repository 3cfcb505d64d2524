"""`greenline bench`: what a protocol costs, counted in virtual time, and what the database does on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from greenline.cli.database_bench import measured
from greenline.cli.say import Misuse, as_json, line, progress
from greenline.simulation.measuring import measures

QUICK, LONG = (5.0, 2.0), (30.0, 5.0)
"""Seconds to measure, and to get warm before."""


def bench(
    core: Annotated[str, typer.Argument(metavar="WHAT", help="A protocol, ring; or the database.")],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="In virtual time, where machines do not matter.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Some seconds for each figure.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
) -> None:
    """Count what a protocol costs: datagrams, rotations, throughput, reconfiguration, memory, false alarms.

    Or measure the database: durable inserts a second through three replicas on this machine.
    """
    if core == "database":
        _measure_database(quick, json)
        return
    if core != "ring":
        raise Misuse(f"there is nothing to count of {core!r}; there is ring, and database")
    if not simulated:
        raise Misuse("only --simulated is counted here; what depends on the machine is in `make bench`")
    found = []
    with progress("counting") as bar:
        task = bar.add_task("", total=None)
        for measure in measures():
            found.append(measure)
            bar.advance(task)
    if json:
        as_json({"core": core, "measures": [vars(measure) for measure in found]})
        return
    for measure in found:
        thesis = f"   the thesis: {measure.thesis}" if measure.thesis else ""
        line(f"{measure.what:<74} {measure.value:>9,.3g} {measure.unit}{thesis}".rstrip())


def _measure_database(quick: bool, wants_json: bool) -> None:
    found = []
    for measure in measured(*(QUICK if quick else LONG)):
        found.append(measure)
        if not wants_json:
            line(measure)
    if wants_json:
        as_json({"what": "database", "measures": [measure.as_dict for measure in found]})
