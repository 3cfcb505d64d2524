"""`greenline pipeline`: the ordered log into tables, files into the cluster, samples into figures; all on Spark."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from greenline.cli.local import PLACE
from greenline.cli.reach import At, Ca, Place, User, reach
from greenline.cli.say import Misuse, Page, Status, as_json, aside, hush, line, out, progress
from greenline.client import Error, TimedOut, Unreachable
from greenline.pipeline import progress as reported
from greenline.pipeline import session, tables_book
from greenline.pipeline.causes import cause
from greenline.pipeline.java import NoSpark
from greenline.pipeline.progress import Progress
from greenline.pipeline.reaching import BadOption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from greenline.pipeline.running import Running

INTO = Path("greenline-tables")
SAYS_EVERY_S = 10.0
"""How a stream is, where nobody watches a bar."""
SHOWN = 20
_WIDE = 200

RUN = """\b
Examples:
  greenline pipeline run                                        the local cluster, into greenline-tables
  greenline pipeline run --at 10.0.0.1:7600 --user ann --ca ca.pem --into /data/tables
  greenline pipeline run --files greenline-local/data/p         the log of a node that does not run
  greenline pipeline run --archived                             only what is archived already; nobody is asked
"""
SHOW = """\b
Examples:
  greenline pipeline show account
  greenline pipeline show account --at 4711 --json
  greenline pipeline show account --history
"""

app = typer.Typer(help="The ordered log into tables, and data into the cluster, on Spark.", no_args_is_help=True)

Into = Annotated[Path, typer.Option("--into", help="Where the archive and the tables are.")]
Master = Annotated[str | None, typer.Option("--master", help="A Spark master; without: this machine.")]
Memory = Annotated[str, typer.Option("--memory", help="Of Spark on this machine.")]
Json = Annotated[bool, typer.Option("--json", help="Say it to a program.")]
Files = Annotated[
    Path | None, typer.Option("--files", help="The data of a node that does not run, in place of a cluster.")
]
Base = Annotated[
    Path | None,
    typer.Option("--base", help="For a new archive, if the order's beginning is gone: a `greenline backup`."),
]


@app.command(epilog=RUN)
def run(
    into: Into = INTO,
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    files: Files = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only what is archived already.")] = False,
    base: Base = None,
    verify: Annotated[bool, typer.Option(help="Compare the rebuilt tables with a replica in the end.")] = True,
    master: Master = None,
    memory: Memory = "2g",
    json: Json = False,
) -> None:
    """Bring the archive and the tables up to where the order is by now.

    What is there is taken up where it stands. The exit status is 1 if an expectation is broken.
    """
    options = {} if archived else _options(place, at, user, ca, files)
    begun = time.monotonic()
    _check_base(base)
    with _failures(), _telling("following") as tell:
        spark = _spark(master, memory)
        with _running(spark, into, options, base, tell) as work:
            ended = work.run(verifies=verify)
    if json:
        as_json(_json(ended))
        return
    for text in _summary(ended):
        line(text)
    named = into / tables_book.FILE
    where = f"the files are named in {named}" if named.exists() else "there is nothing to make tables of"
    aside(f"{time.monotonic() - begun:.1f} s; {where}")


@app.command(epilog="Example: greenline pipeline stream --at 10.0.0.1:7600 --user ann --ca ca.pem --into /data/tables")
def stream(
    into: Into = INTO,
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    base: Base = None,
    master: Master = None,
    memory: Memory = "2g",
) -> None:
    """Keep the archive and the tables up to date, until Ctrl-C or SIGTERM.

    `greenline pipeline status` tells the lag; status.prom tells Prometheus.
    """
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    options = _options(place, at, user, ca, None)
    _check_base(base)
    with _failures(), _telling("following") as tell:
        spark = _spark(master, memory, session.IN_SMALL_PIECES)
        with _running(spark, into, options, base, tell) as work:
            ended = work.stream(is_over)
    for text in _summary(ended):
        line(text)


@app.command(epilog="Example: greenline pipeline status --into /data/tables --json")
def status(
    into: Into = INTO,
    json: Json = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="As Prometheus reads it.")] = False,
) -> None:
    """How far the tables are, and how late. The exit status is 1 if it has failed, 3 if it was killed."""
    found = reported.read(into)
    if found is None:
        raise Misuse(f"nothing was ever run into {into}: `greenline pipeline run --into {into}` does")
    if prometheus:
        line(reported.metrics(found).decode().rstrip())
    elif json:
        as_json(_json(found))
    else:
        for text in _summary(found):
            line(text)
    is_killed = found.state in ("running", "waiting") and not found.is_alive
    raise typer.Exit(Status.BROKEN if found.state == "failed" else Status.STUCK if is_killed else Status.OK)


@app.command(epilog=SHOW)
def show(
    table: Annotated[str, typer.Argument(help="Its name; or bundles, actions, changes with --log.")],
    into: Into = INTO,
    position: Annotated[int | None, typer.Option("--at", help="As it was after this position.")] = None,
    history: Annotated[bool, typer.Option("--history", help="All that it ever held, and from when to when.")] = False,
    log: Annotated[bool, typer.Option("--log", help="A part of the log: bundles, actions or changes.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="So many rows.")] = SHOWN,
    master: Master = None,
    memory: Memory = "2g",
    json: Json = False,
) -> None:
    """Rows of a table: as they are, as they were after a position, or all that there ever were."""
    if sum((position is not None, history, log)) > 1:
        raise Misuse("--at, --history and --log are three different questions: ask one of them")
    with _failures():
        rows = _asked(_spark(master, memory), into, table, position, history=history, log=log)
        found = rows.limit(limit + 1).toArrow().to_pylist()
    if len(found) > limit:
        aside(f"the first {limit} rows: --limit shows more")
        del found[limit:]
    if json:
        as_json([{name: _plain(value) for name, value in row.items()} for row in found])
    else:
        _print(rows.columns, found)


@app.command(epilog="Example: greenline pipeline load people.csv --table person --create")
def load(
    file: Annotated[
        Path, typer.Argument(help="CSV with a header, JSON lines or Parquet; a file, or a directory of them.")
    ],
    table: Annotated[str, typer.Option("--table", help="Into which table of the cluster.")],
    create: Annotated[
        bool, typer.Option("--create", help="Make the table, with columns as the file has them.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", help="Of the load: who gives it again goes on with it.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="csv, json or parquet, if the name does not tell.")] = None,
    timeout: Annotated[
        int, typer.Option("--timeout", min=1, help="Seconds that some of it may wait for the cluster.")
    ] = 300,
    place: Place = PLACE,
    at: At = None,
    user: User = None,
    ca: Ca = None,
    master: Master = None,
    memory: Memory = "2g",
    json: Json = False,
) -> None:
    """Load a file into a table of the cluster, each row exactly once, also if it is run again under the same name."""
    if not file.exists():
        raise Misuse(f"there is no {file}")
    options = {**_options(place, at, user, ca, None), "timeout": str(timeout)}
    with _failures():
        spark = _spark(master, memory)
        from greenline.pipeline import loading

        aside(f"loading {file} into {table} ...")
        loaded = loading.load(spark, file, table, options, name=name, is_created=create, kind=kind)
    if json:
        as_json({"load": loaded.load, "rows": loaded.rows})
    else:
        line(f"{loaded.rows:,} rows of the load {loaded.load} are in {table}")


@app.command(epilog="Example: BENCH_SAMPLES=samples make bench; greenline pipeline figures samples")
def figures(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="Samples that benchmarks have left.")],
    output: Annotated[Path, typer.Option("--output", help="Where plots and tables go.")] = Path("figures"),
    master: Master = None,
    memory: Memory = "2g",
    json: Json = False,
) -> None:
    """The papers' plots, and tables, from the samples of benchmarks."""
    with _failures():
        spark = _spark(master, memory)
        from greenline.pipeline.figures import draw_figures

        drawn = draw_figures(spark, place, output)
    if json:
        paths = {"page": str(drawn.page), "plots": list(map(str, drawn.plots))}
        as_json({**paths, "missing": [plot.name for plot in drawn.missing], "samples": drawn.samples})
        return
    line(f"{drawn.samples:,} samples, {len(drawn.plots)} plots: {drawn.page}")
    for plot in drawn.missing:
        aside(f"no samples for {plot.name}")


# How.


def _options(place: Path, at: str | None, user: str | None, ca: Path | None, files: Path | None) -> dict[str, str]:
    """As the source of Spark takes them."""
    if files is not None:
        if at is not None:
            raise Misuse("--at reads from a cluster, and --files from the files of a node: give one of them")
        return {"files": str(files)}
    reach(place, at, user, ca)  # says what is missing before Spark takes its time to start
    given = {"at": at or str(place), "user": user, "ca": ca}
    return {name: str(value) for name, value in given.items() if value is not None}


def _check_base(base: Path | None) -> None:
    if base is not None and not base.is_file():
        raise Misuse(f"there is no {base}: `greenline backup` makes such a file")


def _spark(master: str | None, memory: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    hush()
    return session.spark("greenline pipeline", master=master, memory=memory, settings=settings)


@contextmanager
def _running(
    spark: SparkSession, into: Path, options: dict[str, str], base: Path | None, tell: Callable[[Progress], None]
) -> Iterator[Running]:
    from greenline.pipeline.running import Running, told

    with Running(spark, into, told(options), base=base, tell=tell) as work:
        yield work


@contextmanager
def _failures() -> Iterator[None]:
    """Each with the status that it means; all of them say what to do."""
    try:
        yield
    except (NoSpark, BadOption) as mistake:
        raise Misuse(_in_our_words(str(mistake))) from None
    except Exception as error:
        lost = session.why_lost(error)
        status = Status.FAILED if lost else _status_of(error)
        if status is None:
            raise
        aside(f"greenline: {_in_our_words(lost or cause(error))}")
        raise typer.Exit(status) from None


def _in_our_words(said: str) -> str:
    """What is an option to Spark has a name of its own here."""
    for option, ours in _OPTIONS:
        said = option.sub(ours, said)
    return said


_OPTIONS = [
    (re.compile(r'option\("load", "([^"]+)"\)'), r"--name \1"),
    (re.compile(r'option\("create", "true"\)'), "--create"),
    (re.compile(r'option\("timeout", SECONDS\)'), "--timeout SECONDS"),
]


def _status_of(error: Exception) -> Status | None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from greenline.pipeline import (
        archive,
        clerk,
        expectations,
        follower,
        loading,
        reading,
        samples,
        tables,
    )
    from greenline.pipeline.twin import Unusable

    statuses: list[tuple[Status, tuple[type[Exception], ...]]] = [
        (Status.BROKEN, (expectations.Unexpected, follower.Differs)),
        (Status.STUCK, (reading.OutOfReach, Unreachable, TimedOut)),
        (Status.MISUSE, (Error, reading.NotRead, archive.InUse, tables.NoTable)),
        (Status.MISUSE, (tables_book.BadBook, samples.NoSamples)),
        (Status.FAILED, (clerk.NotWritten, loading.NotLoaded, Unusable, PySparkException, Py4JError)),
    ]
    return next((status for status, kinds in statuses if isinstance(error, kinds)), None)


@contextmanager
def _telling(what: str) -> Iterator[Callable[[Progress], None]]:
    """A bar where somebody watches; else a line now and then."""
    with progress(what) as bar:
        task = bar.add_task("", total=None)
        said = time.monotonic()

        def tell(now: Progress) -> None:
            nonlocal said
            bar.update(task, total=now.order, completed=now.archived)
            if bar.disable and time.monotonic() - said > SAYS_EVERY_S:
                said = time.monotonic()
                because = f"; waits: {now.because}" if now.because else ""
                aside(f"{now.archived:,} of {now.order:,} positions, {now.lag_seconds:.1f} s behind{because}")

        yield tell


def _summary(said: Progress) -> list[str]:
    state = said.state if said.state not in ("running", "waiting") or said.is_alive else "killed"
    lines = [
        f"{state:<10}{said.archived:,} of {said.order:,} positions, {said.lag_seconds:.1f} s behind",
        f"{'tables':<10}written up to {said.written:,}, {said.written_lag_seconds:.1f} s behind",
    ]
    if said.because:
        lines.insert(1, f"{'because':<10}{said.because}")
    if said.verified:
        lines.append(f"{'verified':<10}equal to a replica at {said.verified:,}")
    lines += [f"  {name:<30} {count:>12,} rows" for name, count in sorted(said.rows.items())]
    return lines + [f"  {name:<30} left out: {why}" for name, why in sorted(said.left_out.items())]


def _json(said: Progress) -> dict[str, Any]:
    return {**{field: getattr(said, field) for field in said.__struct_fields__}, "is_alive": said.is_alive}


def _asked(spark: SparkSession, into: Path, table: str, position: int | None, *, history: bool, log: bool) -> DataFrame:
    from greenline.pipeline.archive import KINDS
    from greenline.pipeline.tables import Tables

    tables = Tables(spark, into)
    if not tables.archive.last:
        raise Misuse(f"nothing was ever run into {into}: `greenline pipeline run --into {into}` does")
    if log:
        if table not in KINDS:
            raise Misuse(f"the log has {', '.join(KINDS)}, and no {table}")
        return tables.log(table)
    if history:
        return tables.history(table).orderBy("_valid_from", "_key")
    return tables.as_of(table, tables.archive.last if position is None else position).drop("_valid_to").orderBy("_key")


def _plain(value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case float() if not isfinite(value):
            return str(value)  # JSON has no such number
        case Decimal():
            return str(value)
        case list():
            return [_plain(each) for each in value]
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _print(columns: list[str], rows: list[dict[str, object]]) -> None:
    shown = [
        name for name in columns if name not in ("_key", "_other") or any(row[name] for row in rows if name != "_key")
    ]
    table = Table(*shown, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*("" if row[name] is None else str(_plain(row[name])) for name in shown))
    (out if out.is_terminal else Page(width=_WIDE, highlight=False, emoji=False)).print(table, markup=False)
