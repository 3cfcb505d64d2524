"""Overlay: what dirty queries see. The bundles that are red here, applied on top of the green state, aside from it.

It is a database of pages laid over the committed ones (`pages`): neither the writer nor the log knows of it. It is
made when somebody asks, by the same rules by which bundles become green, and grows while more of them come.
As soon as the writer commits something, it is of yesterday: what runs on it is stopped and begun again on a new one,
so that the log is pinned no longer than that. Under steady commits a long query would never end; after some attempts
it goes on with what it has, as long as any other query may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import apsw

from greenline.database.sqlite.bundles import BEGIN, Bundles, Chunks
from greenline.database.sqlite.connection import OURS, Role, opened, unhooked
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.holding import Hold, Turn
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.pages import Layers, Pages, View
from greenline.database.sqlite.readers import Asked, Done, rows_of
from greenline.database.sqlite.wal import Wal
from greenline.database.sqlite.writer import Writer
from greenline.kernel.database import Rows

CACHE_BYTES = 8 * 1024 * 1024
PACE = 10_000
"""Steps of SQLite's virtual machine between two looks at whether it is of any use still."""


class Stale(Exception):
    """The writer has committed something since, or we are to let go of the file."""


class Overlay:
    def __init__(self, path: Path, wal: Wal, writer: Writer, limits: Limits) -> None:
        self._path = path
        self._wal = wal
        self._writer = writer
        self._limits = limits
        self.hold = Hold(self._drop)
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._pinned: Pinned | None = None
        self._layer: Layer | None = None
        """On top of what is pinned."""
        self._is_patient = False
        """What runs is not to be stopped for a commit."""
        self._is_closed = False
        self._base = unhooked(path)
        writer.on_commit.append(self.on_commit)
        self._thread = Thread(target=self._serve, name="overlay", daemon=True)
        self._thread.start()

    def query(self, asked: Asked, position: int, bundles: tuple[Chunks, ...], done: Done) -> None:
        """It is to see all up to `position`, which is green, and these on top of it."""
        self._queue.put(lambda: self._answer(asked, position, bundles, done))

    def on_commit(self, _: int) -> None:
        """In the writer's thread."""
        pinned = self._pinned
        if pinned is not None and not pinned.is_stale:
            pinned.is_stale = True
            self._queue.put(self._drop_if_stale)

    def stop(self) -> None:
        """Let go of the file. What is being answered is begun again by `go_on`."""
        self.hold.stop()
        self._base.close()

    def go_on(self, wal: Wal) -> None:
        self._wal = wal
        self._base = unhooked(self._path)
        self.hold.go_on()

    def close(self) -> None:
        """What still waits is not answered."""
        self._is_closed = True
        self._queue.put(None)
        self.hold.go_on()
        self._thread.join()
        self._drop()
        self._base.close()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None and not self._is_closed:
            job()

    def _answer(self, asked: Asked, position: int, bundles: tuple[Chunks, ...], done: Done) -> None:
        attempts = count(1)
        while not self._is_closed and self._writer.broken is None:
            self._is_patient = next(attempts) > self._limits.dirty_attempts
            try:
                with self.hold.piece():
                    rows = self._rows(asked, position, bundles)
            except (Stale, apsw.InterruptError):
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no outcome
                self._writer.on_break("a dirty query cannot be answered", error)
                return
            done(rows)
            return

    def _rows(self, asked: Asked, position: int, bundles: tuple[Chunks, ...]) -> Rows:
        pinned = self._pinned_at(position)
        if self._layer is not None and not self._layer.is_beginning_of(bundles):
            self._drop_layer()
        layer = self._layer = self._layer or Layer(pinned, self._path.parent, self._limits, self._is_to_leave)
        for chunks in bundles[len(layer.applied) :]:
            if self._is_to_leave():
                raise Stale
            layer.apply(chunks)
        return rows_of(layer.bundles, asked, pinned.position, self._limits)

    def _pinned_at(self, position: int) -> Pinned:
        """The newest state that is committed, which has all up to this position."""
        if self._pinned is not None and self._pinned.is_stale:
            self._drop()
        while self._pinned is None or self._pinned.position < position:
            self._drop()
            turn = Turn(self._pin)
            self._writer.between(turn)
            if not turn.wait(self._is_to_stop):
                raise Stale
        return self._pinned

    def _pin(self, _: apsw.Connection) -> None:
        """In the writer's thread, between two transactions: so we know what exactly is pinned."""
        self._base.execute("BEGIN")
        pages = int(self._base.pragma("page_count"))
        self._pinned = Pinned(View(self._wal, self._wal.extent(), pages), self._writer.committed)

    def _is_to_leave(self) -> bool:
        """Asked now and then while something runs on a layer."""
        is_stale = self._pinned is None or self._pinned.is_stale
        return (is_stale and not self._is_patient) or self._is_to_stop()

    def _is_to_stop(self) -> bool:
        return self._is_closed or self.hold.is_wanted or self._writer.broken is not None

    def _drop_if_stale(self) -> None:
        with self.hold.piece():
            if self._pinned is not None and self._pinned.is_stale:
                self._drop()

    def _drop(self) -> None:
        self._drop_layer()
        if self._pinned is not None:
            self._pinned = None
            self._base.execute("ROLLBACK")

    def _drop_layer(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.close()


@dataclass(slots=True)
class Pinned:
    """A committed state that the log keeps for us."""

    view: View
    position: int
    is_stale: bool = False


class Layer:
    """One committed state, with some bundles on top of it."""

    def __init__(self, pinned: Pinned, directory: Path, limits: Limits, is_to_leave: Callable[[], bool]) -> None:
        self.applied: list[Chunks] = []
        self._position = pinned.position
        moment = Moment()
        self._pages = Pages(pinned.view, directory)
        self._layers = Layers(moment)
        self._layers.add(_NAME, self._pages)
        self._connection = opened(_NAME, Role.OVERLAY, moment, self._layers.name, cache_bytes=CACHE_BYTES)
        for setting in (
            "journal_mode = MEMORY",
            "synchronous = OFF",
            "locking_mode = EXCLUSIVE",
            "temp_store = MEMORY",
        ):
            self._connection.execute(f"PRAGMA {setting}", prepare_flags=OURS).fetchall()
        self.bundles = Bundles(self._connection, moment, limits)
        self._connection.set_progress_handler(is_to_leave, PACE, id=Layer)

    @property
    def written_bytes(self) -> int:
        return self._pages.written_bytes

    def is_beginning_of(self, bundles: tuple[Chunks, ...]) -> bool:
        return self.applied == list(bundles[: len(self.applied)])

    def apply(self, chunks: Chunks) -> None:
        """Each is committed, so that nothing of it is kept in memory."""
        self._connection.execute(BEGIN, prepare_flags=OURS)
        self.bundles.apply(self._position + len(self.applied) + 1, chunks)
        self._connection.execute("COMMIT", prepare_flags=OURS)
        self.bundles.committed()
        self.applied.append(chunks)

    def close(self) -> None:
        self._connection.close()
        self._layers.unregister()
        self._pages.close()


_NAME = "overlay"
