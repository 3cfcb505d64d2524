"""Snapshots: the committed state for others, and another's in the place of ours.

All of it happens in a thread of its own, one thing after the other; the writer is asked only to make room while a file
takes the place of another. What is in which file:

| file                 |                                                                                 |
|----------------------|---------------------------------------------------------------------------------|
| `snapshots/held`     | what is held for others to read                                                 |
| `snapshots/own`      | our own state when another's was compared with it                               |
| `snapshots/digest-*` | copies of our own state, to find out what it comes to                           |
| `snapshots/next`     | another's, until it is whole and takes our place by being renamed               |
| `snapshots/staged/`  | chunks of another's, by their digests; they survive a crash                     |
| `basis-<digest>`     | what came with the snapshot that we were restored from                          |

At any moment of a restore a crash leaves the old state or the new one, whole: the new file is forced before it takes
the place of the old one, and a log that belongs to the old one is gone before that.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Protocol

import apsw

from greenline.database.sqlite import assembling, basis, images
from greenline.database.sqlite.connection import unhooked
from greenline.database.sqlite.digests import Digests
from greenline.database.sqlite.images import Image
from greenline.database.sqlite.readers import Done
from greenline.database.sqlite.staging import Staging, force
from greenline.database.sqlite.writer import Writer
from greenline.kernel.actions import digest_of
from greenline.kernel.codec import Garbled
from greenline.kernel.database import (
    Answer,
    Chunk,
    Compare,
    DigestOf,
    Lacks,
    Refused,
    Restore,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotEnd,
    SnapshotHeld,
    Stage,
    Staged,
)


class Others(Protocol):
    """All others who have the file open."""

    def stop(self) -> None: ...

    def let_go(self) -> None:
        """The writer has closed it, too."""

    def go_on(self) -> None: ...


Request = SnapshotBegin | SnapshotChunk | SnapshotEnd | Compare | Stage | Restore | DigestOf


class Snapshots:
    def __init__(self, path: Path, writer: Writer, others: Others) -> None:
        self._path = path
        self._writer = writer
        self._others = others
        self._directory = path.parent / "snapshots"
        self._directory.mkdir(exist_ok=True)
        for left_over in self._directory.glob("[!s]*"):  # all but what is staged
            left_over.unlink()
        self._staging = Staging(self._directory / "staged")
        self._held: Image | None = None
        self._own: Image | None = None
        self._digests = Digests(writer.on_break)
        self._copies = count(1)
        self._is_closed = False
        self._queue: SimpleQueue[tuple[Request, Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name="snapshots", daemon=True)
        self._thread.start()

    def ask(self, request: Request, done: Done) -> None:
        self._queue.put((request, done))

    def close(self) -> None:
        """What still waits is not answered."""
        self._is_closed = True
        self._queue.put(None)
        self._thread.join()
        self._digests.close()

    def _serve(self) -> None:
        while (waiting := self._queue.get()) is not None and not self._is_closed:
            request, done = waiting
            try:
                self._do(request, done)
            except Exception as error:  # noqa: BLE001 - whatever it is, the state is not what was asked for
                self._writer.on_break(f"{type(request).__name__} failed", error)
                return

    def _do(self, request: Request, done: Done) -> None:
        match request:
            case SnapshotBegin():
                done(self._hold())
            case SnapshotChunk(position, number):
                done(self._chunk(position, number))
            case SnapshotEnd():
                self._let_go()
                self._writer.put(lambda: done(self._writer.opened()))
            case Compare(digests):
                done(self._compare(digests))
            case Stage(data):
                done(Staged(self._staging.stage(data)))
            case Restore():
                self._restore(request, done)
            case DigestOf():
                self._copy_for_digest(done)

    def _copy_for_digest(self, done: Done) -> None:
        target = self._directory / f"digest-{next(self._copies)}"
        try:
            images.copied(self._path, target).close()
        except apsw.FullError:
            target.unlink(missing_ok=True)
            done(Refused(f"there is no room on the disk for a copy of the database: make some in {self._directory}"))
        else:
            self._digests.ask(target, done)

    # Ours, for others.

    def _hold(self) -> Answer:
        self._let_go()
        self._held = images.take(self._path, self._directory / "held")
        return SnapshotHeld(self._held.position, self._held.digests)

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.remove()
            self._held = None

    def _chunk(self, position: int, number: int) -> Answer:
        if self._held is None or self._held.position != position:
            return Refused(f"no snapshot of position {position} is held")
        if not 0 <= number < len(self._held.digests):
            return Refused(f"the snapshot of position {position} has no chunk {number}")
        return Chunk(position, number, self._held.chunk(number))

    # Another's, for us.

    def _compare(self, digests: tuple[bytes, ...]) -> Answer:
        if self._own is None or self._own.position != self._writer.committed:
            self._own = images.take(self._path, self._directory / "own")
        here = self._staging.digests().union(self._own.digests)
        return Lacks(tuple(number for number, digest in enumerate(digests) if digest not in here))

    def _restore(self, request: Restore, done: Done) -> None:
        whole = self._directory / "next"
        try:
            assembling.assemble(request.digests, self._reader(), whole)
            assembling.checked(whole, request.position, digest_of(request.basis))
        except (assembling.Lacking, Garbled) as error:
            whole.unlink(missing_ok=True)
            done(Refused(str(error)))
            return
        force(whole)
        named = basis.write(self._path.parent, request.basis)
        self._others.stop()
        self._swap(whole)
        self._others.go_on()
        self._forget()
        basis.remove_others(self._path.parent, named)
        self._writer.put(lambda: done(self._writer.opened()))

    def _reader(self) -> assembling.Read:
        own = self._own
        places = {digest: number for number, digest in enumerate(own.digests)} if own is not None else {}

        def read(digest: bytes) -> bytes | None:
            staged = self._staging.read(digest)
            if staged is not None or own is None or digest not in places:
                return staged
            return own.chunk(places[digest])

        return read

    def _swap(self, whole: Path) -> None:
        """In the writer's thread, while nobody has the file open; returns when the writer has opened the new one."""
        is_done = Event()

        def swap() -> None:
            self._others.let_go()
            _leave_no_log(self._path)
            force(self._path.parent)
            whole.replace(self._path)
            force(self._path.parent)

        self._writer.replace(swap, is_done.set)
        while not is_done.wait(0.1):
            if self._writer.broken is not None:
                raise OSError(f"the file could not be replaced: {self._writer.broken.reason}")

    def _forget(self) -> None:
        """What was staged or held belonged to the state before."""
        self._let_go()
        if self._own is not None:
            self._own.remove()
            self._own = None
        self._staging.clear()


def _leave_no_log(path: Path) -> None:
    """A log that is left over would be laid over the new file. The last who closes a database removes it; make sure."""
    log = Path(f"{path}-wal")
    if log.exists():
        unhooked(path).close()
    if log.exists() and log.stat().st_size:
        raise OSError(f"{log} is still in use: close whatever else has the database open")
    log.unlink(missing_ok=True)
    Path(f"{path}-shm").unlink(missing_ok=True)
