"""Digests: what the state comes to, found out from a copy, so that the log is not pinned for as long as that takes."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import apsw

from greenline.database.sqlite import content
from greenline.database.sqlite.images import passing
from greenline.database.sqlite.readers import Done, OnBreak
from greenline.kernel.database import Digest


class Digests:
    def __init__(self, on_break: OnBreak) -> None:
        self._on_break = on_break
        self._queue: SimpleQueue[tuple[Path, Done] | None] = SimpleQueue()
        self._is_closed = False
        self._thread = Thread(target=self._serve, name="digests", daemon=True)
        self._thread.start()

    def ask(self, copy: Path, done: Done) -> None:
        """The copy is ours, and is removed."""
        self._queue.put((copy, done))

    def close(self) -> None:
        """What still waits is not answered."""
        self._is_closed = True
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (waiting := self._queue.get()) is not None and not self._is_closed:
            copy, done = waiting
            try:
                done(self._digest(copy))
            except apsw.InterruptError:
                return  # we are closed
            except (apsw.Error, OSError) as error:
                self._on_break("a copy cannot be read", error)
                return
            finally:
                copy.unlink(missing_ok=True)

    def _digest(self, copy: Path) -> Digest:
        connection = passing(copy)
        connection.set_progress_handler(lambda: self._is_closed, 10_000)
        try:
            return Digest(*content.digest(connection))
        finally:
            connection.close()
