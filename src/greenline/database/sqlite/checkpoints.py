"""Checkpoints: what is committed goes from the log to the main file, away from the writer.

A commit is not forced: a loss of power may take it, until the log is forced here, before each checkpoint. From then on
its position is durable. A passive checkpoint waits for nobody, and under steady writing never comes to the log's end;
so when the log is long and nearly all of it is in the main file, the writer does the rest itself between two
transactions, and then begins the log anew. By then the main file is forced, so that this takes little.

Nor does the log begin anew while somebody reads from it. One query ends in time, but there may always be another; so
when the log is very long, the next ones wait until it could begin anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import apsw

from greenline.database.sqlite.connection import unhooked
from greenline.database.sqlite.holding import Hold, Turn
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.wal import Wal
from greenline.database.sqlite.writer import Writer

ATTEMPTS = 6
"""Of passive ones, to come near the end of a long log."""


class Checkpoints:
    def __init__(self, path: Path, wal: Wal, writer: Writer, limits: Limits, readers: Sequence[Hold] = ()) -> None:
        """`readers`: whoever pins the log, again and again."""
        self._path = path
        self._wal = wal
        self._writer = writer
        self._limits = limits
        self._hold = Hold()
        self._readers = readers
        self._too_long = limits.wal_most_bytes
        """From here on readers are held up."""
        self._committed = Event()
        """Something is committed that is not durable."""
        self._is_urgent = Event()
        """The log is long, or we are to be closed."""
        self._is_closed = False
        self._directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._connection = unhooked(path)
        writer.on_commit.append(self.on_commit)
        self._thread = Thread(target=self._serve, name="checkpoints", daemon=True)
        self._thread.start()

    def on_commit(self, _: int) -> None:
        """In the writer's thread."""
        self._committed.set()
        if not self._is_urgent.is_set() and self._wal.extent().bytes > self._limits.wal_bytes:
            self._is_urgent.set()

    def stop(self) -> None:
        self._hold.stop()
        self._connection.close()

    def go_on(self, wal: Wal) -> None:
        self._wal = wal
        self._connection = unhooked(self._path)
        self._hold.go_on()

    def close(self) -> None:
        self._is_closed = True
        self._is_urgent.set()
        self._committed.set()
        self._hold.go_on()
        self._thread.join()
        self._connection.close()
        os.close(self._directory)

    def _serve(self) -> None:
        while True:
            self._committed.wait()
            self._is_urgent.wait(self._limits.checkpoint_seconds)
            if self._is_closed:
                return
            self._committed.clear()
            self._is_urgent.clear()
            try:
                with self._hold.piece():
                    self.checkpoint()
            except (apsw.Error, OSError) as error:
                self._writer.on_break("the log cannot be brought to the main file", error)
                return

    def checkpoint(self) -> None:
        """Make durable what is committed; shorten the log, if it is long."""
        for _ in range(ATTEMPTS):
            self._force_log()
            self._passive(self._connection)
            extent = self._wal.extent()
            if extent.bytes <= self._limits.wal_restart_bytes:
                self._too_long = self._limits.wal_most_bytes
                return
            os.fdatasync(self._wal.main)
            if extent.frames - extent.backfilled <= self._limits.wal_rest_frames:
                break
        if (size := self._wal.extent().bytes) <= self._too_long:
            self._let_writer_finish()
        else:
            # If somebody else is in the way, a snapshot or a digest, it is of no use to hold them up again soon.
            self._too_long = size + self._limits.wal_most_bytes
            self._finish_without_readers()

    def _force_log(self) -> None:
        """What is committed by now is in the log, or in the main file, which was forced before the log began anew."""
        committed = self._writer.committed
        os.fdatasync(self._wal.log)
        os.fsync(self._directory)
        self._writer.durable = max(self._writer.durable, committed)

    def _passive(self, connection: apsw.Connection) -> None:
        with suppress(apsw.BusyError):  # another one is at work; there will be a next time
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _finish_without_readers(self) -> None:
        """Who reads by now ends within its time. Who begins after the writer has finished is not in the way."""
        for reader in self._readers:
            reader.no_more()
        stopped = [reader for reader in self._readers if reader.is_stopped(self._is_to_leave)]
        try:
            self._let_writer_finish()
        finally:
            for reader in stopped:
                reader.go_on()

    def _let_writer_finish(self) -> None:
        """The next transaction then begins the log anew, unless somebody still reads from it."""
        turn = Turn(self._passive)
        self._writer.between(turn)
        turn.wait(self._is_to_leave)

    def _is_to_leave(self) -> bool:
        return self._is_closed or self._hold.is_wanted or self._writer.broken is not None
