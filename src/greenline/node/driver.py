"""The driver: carries out the router's orders on asyncio, one UDP socket and the log. If you feel an `if` coming, it
belongs in a core.

The socket is ours and drained in batches; there is no task, queue or future for a packet. Packets of one batch are
handed over in the order in which they came.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Ask, Cut, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.router import Layer, Router, Running
from greenline.kernel.scribe import Depth
from greenline.node.log import DiskFailed, Log
from greenline.node.sealing import Keys, Opener, Refused, Sealer

AT_MOST = 64
"""Datagrams that are taken in one go, before timers and the disk have their turn."""
LARGEST_DATAGRAM = 65_535
BUFFER_BYTES = 4 << 20

Address = tuple[str, int]


class Node:
    """One process's cores on a real network. Make it in a running event loop."""

    def __init__(
        self,
        me: ProcId,
        addresses: dict[ProcId, Address],
        layers: Sequence[Layer],
        log: Log,
        keys: Keys,
        *,
        current_key: int = 1,
        tell: Callable[[Any], None] = lambda _: None,
        trace: Callable[[Row], None] = lambda _: None,
        flush: Callable[[], None] = lambda: None,
        depth: Depth = Depth.FULL,
    ) -> None:
        self.me = me
        self.router = Router(me, addresses, layers, depth)
        self.refused: Counter[str] = Counter()
        """Packets that were not opened, by reason."""
        self.stopped: str | None = None
        self.cut_off: frozenset[ProcId] = frozenset()
        """Whom it neither hears nor speaks to: a local cluster's partition."""
        self._addresses = addresses
        self._log = log
        self._keys = keys
        self._current_key = current_key
        self._tell = tell
        self._trace = trace
        self._flush = flush
        """Called before a packet leaves: what others may come to rely on is in the trace of a node that is killed."""
        self._loop = asyncio.get_running_loop()
        self._opener = Opener(keys, frozenset(addresses) - {me})
        self._sealer: Sealer | None = None
        self._is_closed = False
        self._buffer = bytearray(LARGEST_DATAGRAM)
        self._socket = _bound(addresses[me])
        self._loop.add_reader(self._socket, self._on_readable)

    # Life.

    def start(self) -> None:
        """Begin a life from what the log has."""
        self._perform(self.router.boot(self._now(), self._log.contents()))

    @property
    def is_running(self) -> bool:
        return isinstance(self.router.life, Running)

    def ask(self, payload: Any) -> None:
        """The application calls down to the topmost core."""
        self._perform(self.router.ask(self._now(), payload))

    def close(self) -> None:
        """Stop here; what was forced stays."""
        if self._is_closed:
            return
        self._is_closed = True
        self.stopped = self.stopped or "closed"
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._log.close()

    # What befalls it.

    def _now(self) -> float:
        return time.monotonic()

    def _on_readable(self) -> None:
        view = memoryview(self._buffer)
        for _ in range(AT_MOST):
            try:
                size = self._socket.recv_into(self._buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.refused["unreachable"] += 1  # the echo of something that we sent to nobody
                continue
            try:
                sender, frame = self._opener.open(view[:size])
            except Refused as reason:
                self.refused[str(reason)] += 1
                continue
            if sender in self.cut_off:
                self.refused["cut off"] += 1
                continue
            self._perform(self.router.received(self._now(), sender, frame))

    def _fire(self, layer: int, timer: Any, generation: int) -> None:
        if self.stopped is None:
            self._perform(self.router.fire(self._now(), layer, timer, generation))

    def _report(self, number: int, failure: DiskFailed | None) -> None:
        """From the disk's thread."""
        with suppress(RuntimeError):  # the loop may be gone by now
            self._loop.call_soon_threadsafe(self._forced, number, failure)

    def _forced(self, number: int, failure: DiskFailed | None) -> None:
        if self.stopped is not None:
            return
        if failure is None:
            self._perform(self.router.forced(self._now(), number))
        else:
            self._perform(self.router.disk_failed(self._now(), str(failure)))

    # What it does.

    def _perform(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Transmit(to, frame):
                    self._transmit(to, frame)
                case Arm(layer, timer, generation, after):
                    self._loop.call_later(after, self._fire, layer, timer, generation)
                case Record(row):
                    self._trace(row)
                case Tell(payload):
                    self._tell(payload)
                case Write(frame):
                    self._log.write(frame)
                case Force(number):
                    self._log.force(partial(self._report, number))
                case Cut(at):
                    self._log.cut(at)
                case Stop(reason):
                    self.stopped = reason
                    return
                case Ask(_, _, port, _):
                    raise NotImplementedError(f"nothing answers at the port {port!r} yet")

    def _transmit(self, to: tuple[ProcId, ...], frame: bytes) -> None:
        if self._sealer is None:
            # The incarnation is durable before the first packet of a life.
            self._sealer = Sealer(self._keys, self._current_key, self.me, self.router.incarnation)
        self._flush()
        packet = self._sealer.seal(frame)
        for name in to:
            address = self._addresses.get(name)
            if address is None or name in self.cut_off:
                self.refused["to nobody"] += 1
                continue
            try:
                self._socket.sendto(packet, address)
            except OSError:
                self.refused["not sent"] += 1  # a full buffer or an unreachable host: the network loses packets


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    made.bind(address)
    return made
