"""Beside the writer: everybody else who works on the file, opened, held up and closed together."""

from __future__ import annotations

from pathlib import Path

from greenline.database.sqlite.bundles import Chunks
from greenline.database.sqlite.checkpoints import Checkpoints
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.overlay import Overlay
from greenline.database.sqlite.readers import Asked, Done, Readers
from greenline.database.sqlite.snapshots import Request, Snapshots
from greenline.database.sqlite.wal import Wal
from greenline.database.sqlite.writer import Writer
from greenline.kernel.database import DigestOf


class Beside:
    def __init__(self, path: Path, writer: Writer, limits: Limits) -> None:
        self._path = path
        self._writer = writer
        self._wal = Wal(path)
        self._readers = Readers(path, limits, writer.on_break)
        self._overlay = Overlay(path, self._wal, writer, limits)
        pinning = (*self._readers.holds, self._overlay.hold)
        self._checkpoints = Checkpoints(path, self._wal, writer, limits, pinning)
        self._snapshots = Snapshots(path, writer, self)
        self._bundles: tuple[Chunks, ...] = ()
        """What dirty queries are to see on top of what is green."""

    def lay_over(self, bundles: tuple[Chunks, ...]) -> None:
        self._bundles = bundles

    def query(self, asked: Asked, done: Done) -> None:
        """It sees all that is applied by now, once that is committed."""
        self._writer.when_committed(self._writer.position, lambda: self._readers.query(asked, done))

    def dirty_query(self, asked: Asked, done: Done) -> None:
        """It also sees what was laid over; and all that was asked to be applied, which is not laid over any more."""
        bundles = self._bundles
        self._writer.put(lambda: self._overlay.query(asked, self._writer.due, bundles, done))

    def ask(self, request: Request, done: Done) -> None:
        """What is about the state as a whole. A digest is of all that is applied by now."""
        if isinstance(request, DigestOf):
            self._writer.between(lambda _: self._snapshots.ask(request, done))
        else:
            self._writer.put(lambda: self._snapshots.ask(request, done))

    # While the file is replaced.

    def stop(self) -> None:
        for part in (self._checkpoints, self._overlay, self._readers):  # it may be holding up the others
            part.stop()

    def let_go(self) -> None:
        self._wal.close()

    def go_on(self) -> None:
        self._bundles = ()
        self._wal = Wal(self._path)
        self._overlay.go_on(self._wal)
        self._readers.go_on()
        self._checkpoints.go_on(self._wal)

    def close(self) -> None:
        """Before the writer closes; `let_go` after it."""
        for part in (self._snapshots, self._checkpoints, self._overlay, self._readers):
            part.close()
