"""Overlay: what dirty queries see. The bundles that are red here, applied on top of the green state, aside from it.

It is a database of pages laid over the committed ones (`pages`): neither the writer nor the log knows of it. It is
made when somebody asks, by the same rules by which bundles become green, and grows while more of them come.
As soon as the writer commits something, it is of yesterday: what runs on it is stopped and begun again on a new one,
so that the log is pinned no longer than that. Under steady commits a long query would never end; after some attempts
it goes on with what it has, as long as any other query may.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import apsw

from greenline.database.sqlite.bundles import BEGIN, Bundles, Chunks
from greenline.database.sqlite.connection import OURS, Role, opened, unhooked
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.holding import Hold
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.pages import Layers, Pages, View
from greenline.database.sqlite.readers import Asked, Done, rows_of
from greenline.database.sqlite.wal import Wal
from greenline.database.sqlite.writer import Writer
from greenline.kernel.database import Rows

CACHE_BYTES = 8 * 1024 * 1024


class Stale(Exception):
    """The writer has committed something since, or we are to let go of the file."""


class Overlay:
    def __init__(self, path: Path, wal: Wal, writer: Writer, limits: Limits) -> None:
        self._path = path
        self._wal = wal
        self._writer = writer
        self._limits = limits
        self._hold = Hold()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._bundles: tuple[Chunks, ...] = ()
        """What the next query is to see."""
        self._layer: Layer | None = None
        self._is_patient = False
        """What runs is not to be stopped for a commit."""
        self._is_closed = False
        self._base = unhooked(path)
        writer.on_commit.append(self.on_commit)
        self._thread = Thread(target=self._serve, name="overlay", daemon=True)
        self._thread.start()

    def lay(self, bundles: tuple[Chunks, ...]) -> None:
        self._bundles = bundles

    def query(self, asked: Asked, position: int, done: Done) -> None:
        """It is to see all that was applied up to `position`, and what was laid over it last."""
        bundles = self._bundles
        self._queue.put(lambda: self._answer(asked, position, bundles, done))

    def on_commit(self, _: int) -> None:
        """In the writer's thread."""
        layer = self._layer
        if layer is not None and not layer.is_stale:
            layer.is_stale = True
            if not self._is_patient:
                layer.interrupt()
            self._queue.put(self._drop_if_stale)

    def stop(self) -> None:
        """Let go of the file. What is being answered is begun again by `go_on`."""
        self._hold.stop(self._interrupt)
        self._drop()
        self._base.close()

    def go_on(self, wal: Wal) -> None:
        self._wal = wal
        self._base = unhooked(self._path)
        self._hold.go_on()

    def close(self) -> None:
        """What still waits is not answered."""
        self._is_closed = True
        self._queue.put(None)
        while self._thread.is_alive():
            self._interrupt()
            self._thread.join(0.02)
        self._drop()
        self._base.close()

    def _interrupt(self) -> None:
        layer = self._layer
        if layer is not None:
            layer.is_stale = True
            layer.interrupt()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None and not self._is_closed:
            job()

    def _answer(self, asked: Asked, position: int, bundles: tuple[Chunks, ...], done: Done) -> None:
        attempts = count(1)
        while not self._is_closed:
            self._is_patient = next(attempts) > self._limits.dirty_attempts
            try:
                with self._hold.piece():
                    rows = self._rows(asked, position, bundles)
            except (Stale, apsw.InterruptError):
                continue
            except Exception as error:
                self._writer.on_break(f"a dirty query cannot be answered: {type(error).__name__}: {error}")
                return
            done(rows)
            return

    def _rows(self, asked: Asked, position: int, bundles: tuple[Chunks, ...]) -> Rows:
        layer = self._laid_over(position, bundles)
        return rows_of(layer.bundles, asked, layer.position, self._limits)

    def _laid_over(self, position: int, bundles: tuple[Chunks, ...]) -> Layer:
        layer = self._layer
        while layer is None or layer.is_stale or layer.position < position or not layer.is_beginning_of(bundles):
            self._drop()
            layer = self._new_layer()
        for chunks in bundles[len(layer.applied) :]:
            if (layer.is_stale and not self._is_patient) or self._hold.is_wanted or self._is_closed:
                raise Stale
            layer.apply(chunks)
        return layer

    def _new_layer(self) -> Layer:
        """The writer stops for a moment, between two transactions, so that we know what exactly is pinned."""
        is_done = Event()

        def pin(_: apsw.Connection) -> None:
            if not self._is_closed:
                self._base.execute("BEGIN")
                pages = int(self._base.pragma("page_count"))
                extent = self._wal.extent()
                view = View(self._wal, self._wal.newest(extent), pages, extent.page_size)
                self._layer = Layer(view, self._path.parent, self._writer.committed, self._limits)
            is_done.set()

        self._writer.between(pin)
        while not is_done.wait(0.1):
            if self._is_closed:
                raise Stale
        if self._layer is None:
            raise Stale
        return self._layer

    def _drop_if_stale(self) -> None:
        with self._hold.piece():
            if self._layer is not None and self._layer.is_stale:
                self._drop()

    def _drop(self) -> None:
        if self._layer is not None:
            self._layer.close()
            self._layer = None
            self._base.execute("ROLLBACK")


class Layer:
    """One committed state, with some bundles on top of it."""

    def __init__(self, view: View, directory: Path, position: int, limits: Limits) -> None:
        self.position = position
        self.applied: list[Chunks] = []
        self.is_stale = False
        moment = Moment()
        self._pages = Pages(view, directory)
        self._layers = Layers(moment)
        self._layers.add(_NAME, self._pages)
        self._connection = opened(_NAME, Role.OVERLAY, moment, self._layers.name, cache_bytes=CACHE_BYTES)
        for setting in ("journal_mode = MEMORY", "synchronous = OFF", "locking_mode = EXCLUSIVE", "temp_store = MEMORY"):
            self._connection.execute(f"PRAGMA {setting}", prepare_flags=OURS).fetchall()
        self.bundles = Bundles(self._connection, moment, limits)

    @property
    def written_bytes(self) -> int:
        return self._pages.written_bytes

    def is_beginning_of(self, bundles: tuple[Chunks, ...]) -> bool:
        return self.applied == list(bundles[: len(self.applied)])

    def apply(self, chunks: Chunks) -> None:
        """Each is committed, so that nothing of it is kept in memory."""
        self._connection.execute(BEGIN, prepare_flags=OURS)
        self.bundles.apply(self.position + len(self.applied) + 1, chunks)
        self._connection.execute("COMMIT", prepare_flags=OURS)
        self.bundles.committed()
        self.applied.append(chunks)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()
        self._pages.close()


_NAME = "overlay"
