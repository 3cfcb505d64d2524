"""Real processes: `greenline node` with somebody at its terminal, here or at a site of the lab, and their traces."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.node.transport import Address
from greenline.spec.judge import Judge
from greenline.trace.stream import SUFFIX, TraceReader
from greenline.trace.tables import to_table
from tests.lab.sites import Lab
from tests.node.places import key_file
from tests.node.test_driver import free_addresses

PATIENCE_S = 30.0
PORT = 7400

At = Callable[[ProcId, list[str]], list[str]]
"""The command that runs another one at a node's site."""


class Process:
    """One `greenline node`. Whoever kills it remembers which life that was."""

    def __init__(self, name: ProcId, place: Path, at: At) -> None:
        self.name = name
        self.heard: list[str] = []
        self.lives = 0
        self.killed: list[int] = []
        self._place = place
        self._at = at
        self._rest = b""
        self.restart()

    def restart(self) -> None:
        self.lives += 1
        self.heard.clear()
        self._rest = b""
        command = [sys.executable, "-m", "greenline.cli.main", "node", f"{self.name}.toml", "--trace"]
        log = (self._place / f"{self.name}.log").open("ab")
        with log:
            self._popen = subprocess.Popen(
                self._at(self.name, command), cwd=self._place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )

    def say(self, text: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(text.encode() + b"\n")
        self._popen.stdin.flush()

    def listen(self, seconds: float) -> None:
        """Take what it has printed by now, or within so long."""
        assert self._popen.stdout is not None
        if self._popen.stdout.closed:
            return
        ready, _, _ = select.select([self._popen.stdout], [], [], seconds)
        if ready:
            *lines, self._rest = (self._rest + os.read(self._popen.stdout.fileno(), 65_536)).split(b"\n")
            self.heard += [line.decode() for line in lines]

    def last(self, like: str) -> str:
        """The last configuration that it told, or the last message."""
        is_conf = like.endswith("}")
        return next((line for line in reversed(self.heard) if line.startswith("in ") == is_conf), "")

    @property
    def configurations(self) -> list[str]:
        return [line for line in self.heard if line.startswith("in ")]

    def stop_here(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._popen.poll() is None:
            self.killed.append(self.lives)
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> int:
        self._popen.send_signal(signal.SIGTERM)
        return self._popen.wait(PATIENCE_S)


def until(processes: Iterable[Process], line: str, patience: float = PATIENCE_S) -> None:
    """Until the last configuration, or the last message, that each was told ends so."""
    waited_for = list(processes)
    deadline = time.monotonic() + patience
    while not all(each.last(line).endswith(line) for each in waited_for):
        assert time.monotonic() < deadline, {each.name: each.heard[-3:] for each in waited_for}
        for each in waited_for:
            each.listen(0.02)


def until_heard(processes: Iterable[Process], lines: Iterable[str], patience: float = PATIENCE_S) -> None:
    """Until each was told all of these, in whatever order."""
    wanted, waited_for = set(lines), list(processes)
    deadline = time.monotonic() + patience
    while lacking := {each.name: wanted.difference(each.heard) for each in waited_for if wanted.difference(each.heard)}:
        assert time.monotonic() < deadline, lacking
        for each in waited_for:
            each.listen(0.02)


@contextmanager
def cluster(
    place: Path, names: str, lab: Lab | None = None, more: str = "", family: int = 0
) -> Iterator[dict[ProcId, Process]]:
    """Nodes on loopback, or each at its site of the lab, by IPv4 or IPv6; all in one configuration to begin with."""
    addresses = free_addresses(names)
    if lab is not None:
        addresses = {name: (lab.addresses[name][family], PORT) for name in names.split()}
    write_files(place, addresses, more)
    at = lab.command if lab is not None else _here
    nodes = {name: Process(name, place, at) for name in addresses}
    try:
        until(nodes.values(), f"{{{names}}}")
        yield nodes
    finally:
        for each in nodes.values():
            each.kill()


def _here(_: ProcId, command: list[str]) -> list[str]:
    return command


def write_files(place: Path, addresses: dict[ProcId, Address], more: str = "") -> None:
    key_file(place)
    hosts = {name: f"[{host}]" if ":" in host else host for name, (host, _) in addresses.items()}
    members = "\n".join(f'{name} = "{hosts[name]}:{port}"' for name, (_, port) in addresses.items())
    for name in addresses:
        head = f'name = "{name}"\ndata = "data-{name}"\nkey = "cluster.key"\ndatabase = "none"\n'
        text = f"{head}[members]\n{members}\n{more}"
        (place / f"{name}.toml").write_text(text)


def rest(nodes: dict[ProcId, Process]) -> None:
    """Everybody stops, in good order."""
    assert {name: each.stop() for name, each in nodes.items()} == dict.fromkeys(nodes, 0)


def collected(place: Path, nodes: dict[ProcId, Process]) -> list[Row]:
    """The traces of all lives; whoever killed one writes that down."""
    killed = {(name, life) for name, each in nodes.items() for life in each.killed}
    rows: list[Row] = []
    for path in sorted(place.glob(f"data-*/*{SUFFIX}")):
        life = [row for block in TraceReader(path) for row in block.rows]
        if not life:
            continue  # killed before its first packet: nobody has heard of it
        last = life[-1]
        if (last.process, last.incarnation) in killed and last.kind != evidence.CRASH:
            confs = [row.conf for row in life if row.kind in (evidence.REGULAR, evidence.TRANSITIONAL)]
            conf = confs[-1] if confs else None
            life.append(Row(last.process, last.incarnation, len(life), last.time, evidence.CRASH, conf=conf))
        rows += life
    return rows


def judge(rows: list[Row]) -> None:
    broken = Judge(("run", "evs")).broken(to_table([("cluster", rows)]))
    assert [str(each) for each in broken[:3]] == []
