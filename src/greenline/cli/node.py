"""`greenline node`: one node of a cluster in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from greenline.cli.say import Misuse, line
from greenline.kernel.evidence import Row
from greenline.kernel.identities import MessageId
from greenline.kernel.ports import Busy, Deliver, Multicast, RegularConf, Service, TooLarge, TransitionalConf
from greenline.kernel.router import Layer
from greenline.node.config import BadConfig, Checked, load
from greenline.node.driver import Node
from greenline.node.log import Log
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling
from greenline.trace.stream import SUFFIX, TraceWriter


def node(
    config: Annotated[Path, typer.Argument(help="Its greenline.toml; see greenline.node.config for an example.")],
    trace: Annotated[bool, typer.Option("--trace", help="Leave a trace of this life beside the log.")] = False,
) -> None:
    """Run one node. What is typed here is multicast, safe; what the cluster orders is told, with the configurations.

    A line `/cut q r` makes it deaf and mute to q and r, `/heal` ends that.
    """
    try:
        checked = load(config)
    except BadConfig as mistake:
        raise Misuse(str(mistake)) from None
    asyncio.run(_live(checked, trace))


class _Life:
    """The node, and what connects it with a terminal."""

    def __init__(self, config: Checked, trace: bool) -> None:
        config.data.mkdir(parents=True, exist_ok=True)
        self._config = config
        self._writer: TraceWriter | None = None
        self._wants_trace = trace
        self._said = 0
        self._half_a_line = b""
        layers = [Layer("ring", 1, RingCore(config.ring), AnyMessage, Ceiling)]
        try:
            self.node = Node(
                config.name,
                config.addresses,
                layers,
                Log(config.data / "log"),
                {1: config.key},
                tell=self._tell,
                trace=self._trace if trace else lambda _: None,
                flush=self._flush,
            )
        except OSError as error:
            host, port = config.addresses[config.name]
            raise Misuse(f"cannot listen at {host}:{port}: {error.strerror}; is another node running there?") from None

    def read(self, terminal: int) -> None:
        """Whatever was typed by now, line by line."""
        typed = os.read(terminal, 65_536)
        if not typed:
            asyncio.get_running_loop().remove_reader(terminal)  # nobody types any more; the node lives on
        *lines, self._half_a_line = (self._half_a_line + typed).split(b"\n")
        if self.node.is_running:
            for text in lines:
                self._say(text)

    def _say(self, text: bytes) -> None:
        command, *names = text.decode(errors="replace").split() or [""]
        if command in ("/cut", "/heal"):
            self.node.cut_off = frozenset(names if command == "/cut" else ())
            return
        message = MessageId(self._config.name, self.node.router.incarnation, self._said + 1)
        self._said += 1
        self.node.ask(Multicast(message, Service.SAFE, text))

    def close(self) -> None:
        self.node.close()
        if self._writer is not None:
            self._writer.close()

    def _tell(self, upcall: Any) -> None:
        match upcall:
            case RegularConf(conf):
                line(f"in {conf}")
            case TransitionalConf(conf):
                line(f"leaving with {' '.join(conf.members)}")
            case Deliver(message, _, payload):
                line(f"{message.sender}: {payload.decode(errors='replace')}")
            case Busy() | TooLarge():
                self._said -= 1
                line("not taken: too much is waiting, or it is too large")

    def _trace(self, row: Row) -> None:
        if self._writer is None:
            # The first row of a life: only now is its number known, and durable.
            path = self._config.data / f"{self._config.name}-{row.incarnation}{SUFFIX}"
            self._writer = TraceWriter(path, "cluster")
        self._writer.add(row)

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()


async def _live(config: Checked, trace: bool) -> None:
    life = _Life(config, trace)
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    life.node.start()
    terminal = sys.stdin.fileno()
    loop.add_reader(terminal, life.read, terminal)
    while not over.is_set() and life.node.stopped is None:
        try:
            await asyncio.wait_for(over.wait(), 0.2)
        except TimeoutError:
            continue
    reason = life.node.stopped
    life.close()
    if reason is not None:
        raise Misuse(f"{config.name} has stopped: {reason}")
