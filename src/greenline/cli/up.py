"""`greenline up`: a local cluster in processes of its own, and a prompt for SQL, to cut, heal, kill and restart.

It starts the nodes, follows what they write into their logs, and stops them in the end. What its prompt does, the
commands of the same names do, too, from any terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer

from greenline.cli import cluster
from greenline.cli.local import PLACE, Local, make
from greenline.cli.reach import reach
from greenline.cli.say import Misuse, aside, heed_termination, line
from greenline.cli.sql import Shell
from greenline.client import Error
from greenline.kernel.identities import ProcId
from greenline.node.config import Stored, written
from greenline.node.status import Status
from greenline.simulation.plan import names_for

EXAMPLE = """\b
At its prompt:
  SELECT 1         SQL, at any replica; also INSERT, CREATE TABLE, ...
  r SELECT 1       SQL at the replica r, for example in a partition
  cut p q | r      the network between the sides is cut; heal ends it
  kill r           kill -9; restart r
  status           who is up, and in which configuration
  quit             stop everything
Without anybody to type (greenline up < /dev/null &) it runs until SIGTERM.
The same from another terminal: greenline sql, status, cut, heal, kill, restart.
"""
MOST_NODES = 26
LOOKS_EVERY_S = 0.1
RATES_EVERY_S = 3.0
PATIENCE_S = 10.0
TRAFFIC = 1.0
"""Messages a second that are worth a line."""


def up(
    nodes: Annotated[
        int | None, typer.Option("--nodes", "-n", help="How many; without it those that are there, or 3.")
    ] = None,
    place: Annotated[Path, typer.Option("--dir", help="Where their files live; a second time they go on.")] = PLACE,
    database: Annotated[
        Stored, typer.Option("--database", help="none: group communication alone; `p hello` multicasts hello from p.")
    ] = Stored.SQLITE,
) -> None:
    """Start a replicated database on this machine, each replica in a process of its own, until it is told to quit."""
    if nodes is not None and not 1 <= nodes <= MOST_NODES:
        raise Misuse(f"--nodes {nodes}: a local cluster has 1 to {MOST_NODES} nodes")
    is_there = nodes is None and any(place.glob("*.toml"))
    _Prompt(Local(place) if is_there else make(place, names_for(nodes or 3), database)).live()


class _Tail:
    """What is written to a file from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0
        self._half_a_line = b""

    def lines(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            more = file.read()
        self._at += len(more)
        *lines, self._half_a_line = (self._half_a_line + more).split(b"\n")
        return [each.decode(errors="replace") for each in lines]


class _Typist:
    """Whoever types. Input that ends before anything was typed is nobody's, as in a script that ends its line with an
    ampersand: then the cluster goes on until it is told to stop by a signal."""

    def __init__(self) -> None:
        self._input: TextIO | None = sys.stdin
        self._half_a_line = b""
        self._has_typed = False
        self.has_gone = False

    def lines(self, within: float) -> list[str]:
        """What was typed meanwhile."""
        if self._input is None:
            time.sleep(within)
            return []
        ready, _, _ = select.select([self._input], [], [], within)
        if not ready:
            return []
        typed = os.read(self._input.fileno(), 65_536)
        if not typed and not self._has_typed:
            self._input = None
            aside("nobody is there to type; SIGTERM stops the cluster")
            return []
        self._has_typed = True
        self.has_gone = not typed
        *lines, self._half_a_line = (self._half_a_line + (typed or b"\n")).split(b"\n")
        return [each.decode(errors="replace").strip() for each in lines]


class _Prompt:
    def __init__(self, local: Local) -> None:
        self._local = local
        self._tails = {name: _Tail(local.log(name)) for name in local.names}
        self._typist = _Typist()
        self._rates_at = time.monotonic() + RATES_EVERY_S

    def live(self) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a node that ends is nobody's zombie
        heed_termination()
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        try:
            for failure in self._local.start_all():
                aside(failure)  # the others go on
            self._follow()
            self._local.wait_for_one_configuration()
            aside(f"a cluster of {' '.join(self._local.names)}; `quit` stops it, `greenline up --help` tells the rest")
            while self._turn():
                pass
        except KeyboardInterrupt:
            pass  # Ctrl-C: stop them all
        finally:
            self._local.stop_all()
            self._follow()

    def _turn(self) -> bool:
        """What they say, what was typed; false when it is over."""
        self._follow()
        if time.monotonic() >= self._rates_at:
            self._show_rates()
        for command in self._typist.lines(LOOKS_EVERY_S):
            if command == "quit":
                return False
            self._carry_out(command)
        return not self._typist.has_gone

    def _carry_out(self, command: str) -> None:
        word, _, rest = command.partition(" ")
        local = self._local
        try:
            match word:
                case "":
                    pass
                case "cut":
                    local.cut(rest)
                case "heal":
                    local.heal()
                case "kill":
                    local.kill(rest)
                    line(f"{rest}  killed")
                case "restart":
                    local.restart(rest)
                case "status":
                    cluster.show(cluster.statuses(cluster.everybody(local.place)))
                case _ if word in local.names and self._has_database:
                    self._ask(rest, word)
                case _ if word in local.names:
                    local.say(word, rest)
                case _ if self._has_database:
                    self._ask(command)
                case _:
                    aside(f"cannot do {command!r}; `greenline up --help` tells what can be done")
        except Misuse as mistake:
            aside(str(mistake))

    @property
    def _has_database(self) -> bool:
        return any(config.database is Stored.SQLITE for config in self._local.configs.values())

    def _ask(self, statement: str, name: ProcId | None = None) -> None:
        """Of one replica, or of any: a partition shows only at the one that is asked."""
        shell = Shell(
            "strict" if name is None else "dirty", "green" if name is None else "accepted", timeout=PATIENCE_S
        )
        reached = reach(self._local.place)
        if name is not None:
            reached = msgspec.structs.replace(reached, addresses=written(self._local.configs[name].clients[name]))

        async def run() -> None:
            async with reached.connected(roams=name is None) as db:
                await shell.run(db, statement)

        try:
            asyncio.run(run())
        except Error as error:
            aside(str(error))

    def _follow(self) -> None:
        for name, tail in self._tails.items():
            for text in tail.lines():
                told = _told(text)
                if told:
                    line(f"{name}  {told}")

    def _show_rates(self) -> None:
        self._rates_at = time.monotonic() + RATES_EVERY_S
        found = cluster.statuses({name: self._admins()[name] for name in self._local.names if self._local.pid(name)})
        rates = {name: each.delivered_rate for name, each in found.items() if isinstance(each, Status)}
        if any(rate >= TRAFFIC for rate in rates.values()):
            line("delivered a second: " + "  ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))

    def _admins(self) -> dict[ProcId, tuple[str, int]]:
        return {name: config.admins[name] for name, config in self._local.configs.items()}


def _told(text: str) -> str:
    """A line of a node's log as this prompt shows it: what it prints, and what it warns of."""
    if not text.startswith('{"'):
        return text
    try:
        facts = json.loads(text)
    except ValueError:
        return text
    if facts.pop("level", "info") == "info":
        return ""
    event = facts.pop("event", "")
    rest = [f"{key} {value}" for key, value in facts.items() if key not in ("node", "timestamp")]
    return f"! {event}: {', '.join(rest)}"
