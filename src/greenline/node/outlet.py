"""Outlets: lines for whoever reads our output, without ever waiting for it.

A terminal that is held, or a pager that is full, would stop the event loop, and the node would be left behind by its
ring. So a thread writes, and what a reader does not take in time is dropped and counted.
"""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue

MOST_WAITING = 10_000
"""Lines."""
FLUSHED_WITHIN_S = 1.0


class Outlet:
    """One of the process's outputs, as a text stream. Also of a process that has none."""

    def __init__(self, descriptor: int) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name=f"outlet {descriptor}", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(text.encode(errors="replace"))
        else:
            self.dropped += 1
        return len(text)

    def flush(self) -> None:
        """It is under way already."""

    def isatty(self) -> bool:
        try:
            return os.isatty(self._descriptor)
        except OSError:
            return False

    def close(self) -> None:
        """Wait a moment for what is under way; a reader that has stopped reading is not waited for."""
        self._waiting.put(None)
        self._thread.join(FLUSHED_WITHIN_S)

    def _write_all(self) -> None:
        is_open = True
        while (data := self._waiting.get()) is not None:
            rest = memoryview(data)
            while rest and is_open:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except OSError:
                    is_open = False  # nobody reads any more: the node lives on
