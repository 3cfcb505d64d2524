"""`greenline bench`: what a protocol costs, counted in virtual time, the same on every machine."""

from __future__ import annotations

from typing import Annotated

import typer

from greenline.cli.say import Misuse, as_json, line, progress
from greenline.simulation.measuring import measures


def bench(
    core: Annotated[str, typer.Argument(metavar="CORE", help="The protocol: ring.")],
    simulated: Annotated[
        bool, typer.Option("--simulated", help="In virtual time, where machines do not matter.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
) -> None:
    """Count what a protocol costs: datagrams, rotations, throughput, reconfiguration, memory, false alarms."""
    if core != "ring":
        raise Misuse(f"there is nothing to count of {core!r}; there is ring")
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
