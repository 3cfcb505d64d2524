"""Clients that keep so many messages under way, and measure how long the answers take."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque

LENGTH = struct.Struct(">I")
MESSAGE = LENGTH.pack(200) + bytes(200)
STREAM = memoryview(MESSAGE * 5000)
"""What clients say, over and over."""
AT_ONCE = 50
"""Messages whose time is taken together."""


class Connection:
    def __init__(self, address: tuple[str, int], window: int) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.answered = 0
        self.is_over = False
        self.latencies: list[float] = []
        self._room = window
        self._sent: deque[tuple[int, float]] = deque()
        self._total = 0
        self._unsent = 0
        self._at = 0
        self._rest = b""

    @property
    def is_waiting(self) -> bool:
        return self.answered < self._total

    def fill(self) -> None:
        """Say as much as the window leaves room for."""
        if self.is_over:
            return
        at_once = min(AT_ONCE, max(1, self._room))
        now = time.perf_counter()
        while self._room >= at_once:
            self._unsent += len(MESSAGE) * at_once
            self._room -= at_once
            self._total += at_once
            self._sent.append((self._total, now))
        self.flush()

    def flush(self) -> None:
        while self._unsent:
            try:
                sent = self.socket.send(STREAM[self._at : self._at + self._unsent])
            except BlockingIOError:
                return
            self._unsent -= sent
            self._at = (self._at + sent) % len(STREAM)

    def read(self) -> None:
        data = self._rest + self.socket.recv(65_536)
        whole = len(data) // LENGTH.size * LENGTH.size
        done = sum(count for (count,) in LENGTH.iter_unpack(data[:whole]))
        self._rest = data[whole:]
        self.answered += done
        self._room += done
        now = time.perf_counter()
        while self._sent and self._sent[0][0] <= self.answered:
            self.latencies.append(now - self._sent.popleft()[1])
        self.fill()


class Load:
    """Some connections to each node, each with its window."""

    def __init__(self, addresses: list[tuple[str, int]], connections: int, window: int) -> None:
        self.connections = [Connection(address, window) for address in addresses for _ in range(connections)]
        self._selector = selectors.DefaultSelector()
        for each in self.connections:
            self._selector.register(each.socket, selectors.EVENT_READ, each)

    def run(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        for each in self.connections:
            each.fill()
        while (left := end - time.perf_counter()) > 0:
            for key, _ in self._selector.select(min(left, 0.05)):
                key.data.read()
            for each in self.connections:
                each.flush()

    def settle(self) -> None:
        """Say no more, and wait for what was asked."""
        for each in self.connections:
            each.is_over = True
        while any(each.is_waiting for each in self.connections):
            for key, _ in self._selector.select(0.05):
                key.data.read()
            for each in self.connections:
                each.flush()

    @property
    def answered(self) -> int:
        return sum(each.answered for each in self.connections)

    def latencies(self) -> list[float]:
        return sorted(took for each in self.connections for took in each.latencies)

    def close(self) -> None:
        self._selector.close()
        for each in self.connections:
            each.socket.close()

    def forget(self) -> None:
        for each in self.connections:
            each.latencies.clear()
