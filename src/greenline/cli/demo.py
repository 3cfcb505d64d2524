"""`greenline demo`: a cluster through a partition and its healing, told as a story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.say import Misuse, Status, line
from greenline.simulation.cluster import Cluster
from greenline.trace.diagram import draw
from greenline.trace.story import tell


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to leave the diagram.")] = Path("demo"),
) -> None:
    """Tell how a simulated cluster lives through a partition, a crash and the healing."""
    told = 0

    def chapter(title: str) -> None:
        nonlocal told
        line(f"\n{title}")
        lines = [each for each in tell(board.rows) if each.number >= told]
        for each in lines:
            line(f"  {each}")
        told = len(board.rows)

    board = Cluster("p q r", seed=1).settle()
    line("Three processes keep a noticeboard in common: everybody is to read every notice.")
    chapter("They start, and find each other.")

    board["q"].multicast("all is well")
    board.settle()
    chapter(
        "q pins a notice. It is forced to q's disk before anybody hears of it, and to each reader's before it is read."
    )

    board.partition("p | q r").settle()
    board["p"].multicast("where is everybody?")
    board["r"].multicast("p has gone")
    board.settle()
    chapter("The network splits: p is alone. Nobody is turned away, each side goes on.")

    board["p"].multicast("good night")
    board.crash("p")
    board.wait(0.5).restart("p").settle()
    chapter("p pins one more and crashes before it was on disk. It starts again with what its disk has.")

    board.heal().settle()
    chapter("The network heals. What was said on either side reaches everybody, each author's notices in order.")

    line()
    for name in board.names:
        line(f"  {name} has read: {', '.join(board[name].delivered)}")
    broken = board.broken_rules()
    for each in broken:
        line(f"FAIL  {each}")
    line("\nThe specification was asked: no rule is broken." if not broken else "")
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / "partition.svg").write_text(draw("a partition and its healing", board.rows))
    except OSError as error:
        raise Misuse(f"cannot write the diagram to {output}: {error.strerror}") from None
    line(f"The same as a picture: {output / 'partition.svg'}")
    line("Next: greenline simulate noticeboard --nodes 5 --seeds 0:200 --profile storm")
    raise typer.Exit(Status.BROKEN if broken else Status.OK)
