"""`greenline trace`: look at what runs have left behind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.say import Misuse, as_json, aside, line
from greenline.kernel.evidence import WORLD, Row
from greenline.trace.diagram import draw, page
from greenline.trace.order import told
from greenline.trace.story import tell
from greenline.trace.stream import SUFFIX
from greenline.trace.tables import load, to_parquet, trace_files

app = typer.Typer(help="Look at traces: the runs in them, one as a story, one as a diagram.", no_args_is_help=True)

Place = Annotated[Path, typer.Argument(help="A trace file, or a directory of them.", show_default=False)]
OfRun = Annotated[str | None, typer.Option("--run", help="Which run, where there are several.")]


@app.command(epilog="Example: greenline trace show traces --json")
def show(
    place: Place,
    json: Annotated[bool, typer.Option("--json", help="Say it to a program.")] = False,
) -> None:
    """List the runs: their processes, how often each kind of event occurs, and whether they fell quiet."""
    table = load(place, aside).select(["run", "process", "kind"]).to_pydict()
    kinds: dict[str, Counter[str]] = {}
    processes: dict[str, set[str]] = {}
    for run, process, kind in zip(table["run"], table["process"], table["kind"], strict=True):
        kinds.setdefault(run, Counter())[kind] += 1
        processes.setdefault(run, set()).add(process)
    if json:
        as_json(
            {
                "runs": [
                    {"run": run, "processes": sorted(processes[run] - {WORLD}), "kinds": dict(sorted(each.items()))}
                    for run, each in kinds.items()
                ]
            }
        )
        return
    for run, each in kinds.items():
        line(f"{run}   {' '.join(sorted(processes[run] - {WORLD}))}   {sum(each.values())} rows")
        line("  " + "  ".join(f"{kind} {number}" for kind, number in sorted(each.items())))


@app.command(epilog="Example: greenline trace story traces --run noticeboard-storm-5-17")
def story(
    place: Place,
    run: OfRun = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Also what was ignored, and single packets.")
    ] = False,
    until: Annotated[int | None, typer.Option(help="Tell it up to this line.")] = None,
) -> None:
    """Tell a run: one event a line."""
    name, rows = _told(place, run)
    line(name)
    for each in tell(rows, everything):
        if until is not None and each.number > until:
            break
        line(each)


@app.command(epilog="Example: greenline trace diagram traces --run noticeboard-storm-5-17 --output run.svg")
def diagram(
    place: Place,
    run: OfRun = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="An .svg or .html file.")] = Path("diagram.svg"),
) -> None:
    """Draw a run in space and time, as one file that needs nothing else."""
    if output.suffix not in (".svg", ".html"):
        raise Misuse(f"a diagram is an .svg or an .html file, and {output} is neither")
    name, rows = _told(place, run)
    try:
        output.write_text(draw(name, rows) if output.suffix == ".svg" else page(name, rows))
    except OSError as error:
        raise Misuse(f"cannot write {output}: {error.strerror}") from None
    line(f"{name} is drawn in {output}")


@app.command(epilog="Example: greenline trace parquet node-1.trace")
def parquet(place: Place) -> None:
    """Turn the streams at a place into Parquet files beside them."""
    streams = [path for path in trace_files(place) if path.suffix == SUFFIX]
    if not streams:
        raise Misuse(f"{place} holds no stream that is not in Parquet already")
    for stream in streams:
        made, rows = to_parquet(stream, aside)
        line(f"{made}   {rows} rows")


def _told(place: Path, run: str | None) -> tuple[str, list[Row]]:
    try:
        return told(place, run, aside)
    except ValueError as error:
        raise Misuse(str(error)) from None
