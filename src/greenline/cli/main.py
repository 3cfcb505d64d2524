"""The command's front door."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from greenline import __version__
from greenline.cli import (
    audit,
    backup,
    bench,
    cluster,
    demo,
    init,
    members,
    node,
    pipeline,
    rotate,
    simulate,
    sql,
    trace,
    up,
)
from greenline.cli.say import Misuse, Status, aside, line
from greenline.simulation.farm import WorkerFailed
from greenline.trace.stream import NotATrace

app = typer.Typer(
    help="Replicated SQL that keeps working when the network doesn't.",
    epilog="Exit status: 0 all is well, 1 a rule is broken, 2 misuse, 3 a run is stuck, 4 it failed itself.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate)
app.command("audit", epilog="Example: greenline audit traces --rules evs --json")(audit.audit)
app.command("up", epilog=up.EXAMPLE)(up.up)
app.command("sql", epilog=sql.EXAMPLES)(sql.sql)
app.command("status", epilog="Example: greenline status --at 10.0.0.1:7500 --json")(cluster.status)
app.command("cut", epilog='Example: greenline cut "p q | r"')(cluster.cut)
app.command("heal", epilog="Example: greenline heal --dir greenline-local")(cluster.heal)
app.command("kill", epilog="Example: greenline kill r")(cluster.kill)
app.command("restart", epilog="Example: greenline restart r")(cluster.restart)
app.command("join", epilog=members.JOIN)(members.join)
app.command("leave", epilog="Example: greenline leave s")(members.leave)
app.command("remove", epilog="Example: greenline remove s --dead")(members.remove)
app.command("survive", epilog='Example: greenline survive p --dead q --dead r --reason "the site burned down"')(
    members.survive
)
app.command("user", epilog="Example: greenline user ann --role read")(members.user)
app.command("backup", epilog="Example: greenline backup monday.db --dir greenline")(backup.backup)
app.command("restore", epilog=backup.RESTORE)(backup.restore)
app.command("init", epilog=init.EXAMPLE)(init.init)
app.command("token", epilog="Example: greenline token --dir greenline")(init.token)
app.command("node", epilog=node.EXAMPLES)(node.node)
app.command("rotate-key", epilog=rotate.EXAMPLES)(rotate.rotate_key)
app.command("bench", epilog="Example: greenline bench ring --simulated")(bench.bench)
app.add_typer(trace.app, name="trace")
app.add_typer(pipeline.app, name="pipeline")
app.command("demo")(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        line(f"greenline {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


def _fill_descriptors() -> None:
    """Who starts us without an input or an output gets none: else the next file that we open would be it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def run() -> None:
    """Every mistake that a caller can make ends here, in one line."""
    _fill_descriptors()
    try:
        app(prog_name="greenline")
    except (Misuse, NotATrace) as mistake:
        aside(f"greenline: {mistake}")
        sys.exit(Status.MISUSE)
    except OSError as error:
        aside(f"greenline: cannot go on: {error}")
        sys.exit(Status.FAILED)
    except WorkerFailed as failure:
        aside(f"greenline: a worker process failed: {failure}")
        sys.exit(Status.FAILED)


if __name__ == "__main__":
    run()
