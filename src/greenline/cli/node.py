"""`greenline node`: one node of a cluster in this process, until it is told to stop; and its terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from greenline.cli.say import Misuse, Status, aside
from greenline.kernel.ports import Deliver, RegularConf, TransitionalConf
from greenline.node.acquaintance import Damaged
from greenline.node.bootstrap import CannotJoin, join
from greenline.node.config import FILE, BadConfig, Checked, Tracing, address_of, load
from greenline.node.invitation import BadToken, token_of
from greenline.node.life import Life, NotTaken
from greenline.node.outlet import Outlet
from greenline.node.service import Service

PLACE = Path("greenline")
EXAMPLES = """\b
Examples:
  greenline node p.toml --trace
  greenline node --dir greenline                   what `greenline init` has made there
  greenline node --join gl1-... --name q           join the cluster that printed the token
"""

STDOUT = 1
OURS_ALONE = 0o077
"""What a database holds, passwords' verifiers among it, is for who may ask it: its files are nobody else's to read."""


def node(
    config: Annotated[
        Path | None, typer.Argument(help=f"Its {FILE}; see greenline.node.config for an example.", show_default=False)
    ] = None,
    token: Annotated[str | None, typer.Option("--join", help="A token from `greenline init`.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Which of the members to join as.")] = None,
    place: Annotated[Path, typer.Option("--dir", help=f"Where its {FILE} is, or will be.")] = PLACE,
    admin: Annotated[str | None, typer.Option("--admin", help="HOST:PORT of its admin port, over the file's.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Leave a full trace of this life beside the log.")] = False,
) -> None:
    """Run one node. What is typed here is multicast, safe; what the cluster orders is told, with the configurations.

    A line `/cut q r` makes it deaf and mute to q and r, `/heal` ends that.
    """
    if token is not None and (config is not None or name is None):
        raise Misuse("--join needs --name and no file; write greenline node --join TOKEN --name q")
    path = config or place / FILE
    if token is not None and name is not None:
        path = _joined(token, name, place)
    try:
        checked = load(path)
        if admin is not None:
            checked = msgspec.structs.replace(checked, admin=address_of("--admin", admin))
    except (BadConfig, ValueError) as mistake:
        raise Misuse(str(mistake)) from None
    if trace:
        checked = msgspec.structs.replace(checked, trace=Tracing.FULL)
    try:
        asyncio.run(_live(checked))
    except BadConfig as mistake:
        raise Misuse(str(mistake)) from None


def _joined(token: str, name: str, place: Path) -> Path:
    try:
        return join(token_of(token), name, place)
    except (BadToken, CannotJoin, Damaged) as mistake:
        raise Misuse(str(mistake)) from None
    except OSError as error:
        raise Misuse(f"cannot write to {place}: {error.strerror}; choose another --dir") from None


async def _live(config: Checked) -> None:
    os.umask(OURS_ALONE)
    outlet = Outlet(STDOUT)
    service = Service(config, partial(tell, outlet))
    service.stop_on_signals()
    if sys.stdin is not None:
        _Terminal(service.life, outlet).listen(sys.stdin.fileno())
    try:
        await service.run()
    finally:
        outlet.close()


class _Terminal:
    """Somebody who types."""

    def __init__(self, life: Life, outlet: Outlet) -> None:
        self._life = life
        self._outlet = outlet
        self._half_a_line = b""

    def listen(self, terminal: int) -> None:
        with suppress(PermissionError):  # /dev/null, or a file: nobody types
            asyncio.get_running_loop().add_reader(terminal, self._read, terminal)

    def _read(self, terminal: int) -> None:
        """Whatever was typed by now, line by line."""
        typed = os.read(terminal, 65_536)
        if not typed:
            asyncio.get_running_loop().remove_reader(terminal)  # nobody types any more; the node lives on
        *lines, self._half_a_line = (self._half_a_line + typed).split(b"\n")
        for text in lines:
            try:
                self._carry_out(text)
            except NotTaken as refusal:
                self._outlet.write(f"not taken: {refusal}\n")

    def _carry_out(self, text: bytes) -> None:
        command, *names = text.decode(errors="replace").split() or [""]
        if command in ("/cut", "/heal"):
            self._life.cut(frozenset(names if command == "/cut" else ()))
        else:
            self._life.say(text)


def tell(outlet: Outlet, upcall: Any) -> None:
    """What the cluster orders, on stdout."""
    match upcall:
        case RegularConf(conf):
            outlet.write(f"in {conf}\n")
        case TransitionalConf(conf):
            outlet.write(f"leaving with {' '.join(conf.members)}\n")
        case Deliver(message, _, payload):
            outlet.write(f"{message.sender}: {payload.decode(errors='replace')}\n")


def run(path: Path) -> None:
    """What a local cluster starts: one node, and nothing of the other commands."""
    try:
        asyncio.run(_live(load(path)))
    except BadConfig as mistake:
        aside(f"greenline: {mistake}")
        sys.exit(Status.MISUSE)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
