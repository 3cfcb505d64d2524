"""`greenline up`: a local cluster in processes of its own, and a prompt to speak, cut, heal, kill and restart."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from greenline.cli.say import Misuse, aside, line
from greenline.kernel.identities import ProcId
from greenline.node.sealing import KEY_BYTES
from greenline.simulation.plan import names_for

EXAMPLE = """\b
At its prompt:
  p hello          multicast hello from p
  cut p q | r      the network between the sides is cut; heal ends it
  kill r           kill -9; restart r
  status           who is up, and in which configuration
  quit             stop everything
"""
MOST_NODES = 26
STOPS_WITHIN_S = 5.0


def up(
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="How many.")] = 3,
    place: Annotated[Path, typer.Option("--dir", help="Where their files live; a second time they go on.")] = Path(
        "greenline-local"
    ),
) -> None:
    """Start a local cluster, each node in a process of its own, and show its life until it is told to quit."""
    if not 1 <= nodes <= MOST_NODES:
        raise Misuse(f"--nodes {nodes}: a local cluster has 1 to {MOST_NODES} nodes")
    names = names_for(nodes)
    _write_files(place, names)
    asyncio.run(_Cluster(place, names).live())


def _write_files(place: Path, names: tuple[ProcId, ...]) -> None:
    """A key and a configuration for each; what is there already stays."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"cannot make the directory {place}: {error.strerror}") from None
    there = sorted(path.stem for path in place.glob("*.toml"))
    if there and there != sorted(names):
        raise Misuse(f"{place} holds a cluster of {' '.join(there)}; ask for {len(there)} nodes, or for another --dir")
    if there:
        return
    key = place / "cluster.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(KEY_BYTES) + "\n")
    ports = _free_ports(len(names))
    members = "\n".join(f'{name} = "127.0.0.1:{port}"' for name, port in zip(names, ports, strict=True))
    for name in names:
        text = f'name = "{name}"\ndata = "data/{name}"\nkey = "cluster.key"\n\n[members]\n{members}\n'
        (place / f"{name}.toml").write_text(text)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class _Cluster:
    def __init__(self, place: Path, names: tuple[ProcId, ...]) -> None:
        self.place = place
        self.names = names
        self.processes: dict[ProcId, asyncio.subprocess.Process] = {}
        self.last: dict[ProcId, str] = {}
        """The configuration that each was told last."""
        self._relays: set[asyncio.Task[None]] = set()
        self._half_a_line = b""
        self._over = asyncio.Event()

    async def live(self) -> None:
        for name in self.names:
            await self._start(name)
        terminal = sys.stdin.fileno()
        loop = asyncio.get_running_loop()
        commands: asyncio.Queue[str] = asyncio.Queue()
        loop.add_reader(terminal, self._read, terminal, commands)
        aside("a cluster of " + " ".join(self.names) + "; `quit` stops it, `greenline up --help` tells the rest")
        try:
            while (command := await commands.get()) != "quit":
                await self._carry_out(command)
        except asyncio.CancelledError:
            pass  # Ctrl-C: stop them all
        finally:
            await self._stop_all()

    def _read(self, terminal: int, commands: asyncio.Queue[str]) -> None:
        typed = os.read(terminal, 65_536)
        *lines, self._half_a_line = (self._half_a_line + typed).split(b"\n")
        for text in lines:
            commands.put_nowait(text.decode(errors="replace").strip())
        if not typed:
            asyncio.get_running_loop().remove_reader(terminal)
            commands.put_nowait("quit")

    async def _start(self, name: ProcId) -> None:
        command = [sys.executable, "-m", "greenline.cli.main", "node", str(self.place / f"{name}.toml"), "--trace"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        self.processes[name] = process
        task = asyncio.create_task(self._relay(name, process))
        self._relays.add(task)
        task.add_done_callback(self._relays.discard)

    async def _relay(self, name: ProcId, process: asyncio.subprocess.Process) -> None:
        """What it prints, with its name."""
        assert process.stdout is not None
        while text := (await process.stdout.readline()).decode(errors="replace").rstrip():
            if text.startswith("in "):
                self.last[name] = text[3:]
            line(f"{name}  {text}")

    async def _carry_out(self, command: str) -> None:
        word, _, rest = command.partition(" ")
        match word:
            case "":
                pass
            case "cut":
                self._cut(rest)
            case "heal":
                for name in self.names:
                    self._type(name, "/heal")
            case "kill" if rest in self._alive():
                self.processes[rest].kill()
                await self.processes[rest].wait()
                self.last.pop(rest, None)
                line(f"{rest}  killed")
            case "restart" if rest in self.names and rest not in self._alive():
                await self._start(rest)
            case "status":
                for name in self.names:
                    line(f"{name}  {self.last.get(name, 'starting') if name in self._alive() else 'down'}")
            case _ if word in self._alive():
                self._type(word, rest)
            case _:
                aside(f"cannot do {command!r}; `greenline up --help` tells what can be done")

    def _cut(self, text: str) -> None:
        sides = [set(side.split()) for side in text.split("|")]
        strangers = set().union(*sides) - set(self.names)
        if strangers or len(sides) < 2:
            aside(f"cannot cut {text!r}; write for example: cut {self.names[0]} | {' '.join(self.names[1:])}")
            return
        for name in self.names:
            mine = next((side for side in sides if name in side), {name})
            self._type(name, "/cut " + " ".join(other for other in self.names if other not in mine))

    def _type(self, name: ProcId, text: str) -> None:
        stdin = self.processes[name].stdin
        if name in self._alive() and stdin is not None:
            stdin.write(text.encode() + b"\n")

    def _alive(self) -> list[ProcId]:
        return [name for name, process in self.processes.items() if process.returncode is None]

    async def _stop_all(self) -> None:
        for name in self._alive():
            self.processes[name].terminate()
        for process in self.processes.values():
            try:
                await asyncio.wait_for(process.wait(), STOPS_WITHIN_S)
            except TimeoutError:
                process.kill()
        await asyncio.gather(*self._relays)
