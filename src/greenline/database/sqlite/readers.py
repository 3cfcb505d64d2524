"""Readers: threads that answer queries on what is committed, each on a connection of its own. They change nothing.

A query sees one state, from its beginning to its end, and says of which position. While it runs it pins the log, so
its time is limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import apsw

from greenline.database.sqlite.bundles import Bundles
from greenline.database.sqlite.connection import OURS, Role, opened
from greenline.database.sqlite.determinism import Moment
from greenline.database.sqlite.failures import misuse
from greenline.database.sqlite.holding import Hold
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import OutcomeOf
from greenline.kernel.codec import Garbled
from greenline.kernel.database import Answer, Rows
from greenline.kernel.statements import Inquiry, Look, Question, Reply, Trial, encode, request_of

Asked = bytes | OutcomeOf
Done = Callable[[Answer], None]
OnBreak = Callable[[str, Exception], None]


def rows_of(bundles: Bundles, asked: Asked, position: int, limits: Limits) -> Rows:
    """What a connection says at this position. Raises `apsw.InterruptError` if it is interrupted by somebody else."""
    if isinstance(asked, OutcomeOf):
        return Rows(position, b"", bundles.outcome_of(asked))
    return Rows(position, encode(_reply(bundles, asked, limits)))


def _reply(bundles: Bundles, asked: bytes, limits: Limits) -> Reply:
    try:
        request = request_of(asked)
    except Garbled as garbled:
        return misuse("Garbled", str(garbled))
    match request:
        case Question():
            return bundles.executor.ask(request, time.monotonic() + limits.query_seconds)
        case Trial():
            return bundles.executor.trial(request)
        case Inquiry():
            return bundles.executor.inquire(request)
        case Look():
            return bundles.executor.look(request.statement)


class Readers:
    def __init__(self, path: Path, limits: Limits, on_break: OnBreak) -> None:
        self._queue: SimpleQueue[tuple[Asked, Done] | None] = SimpleQueue()
        self._readers = [_Reader(path, limits, on_break, self._queue, number) for number in range(limits.readers)]

    def query(self, asked: Asked, done: Done) -> None:
        self._queue.put((asked, done))

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Of whoever pins the log while it answers."""
        return tuple(reader.hold for reader in self._readers)

    def stop(self) -> None:
        """Let go of the file. What is being answered is begun again by `go_on`."""
        for reader in self._readers:
            reader.stop()

    def go_on(self) -> None:
        for reader in self._readers:
            reader.go_on()

    def close(self) -> None:
        """What still waits is not answered."""
        for reader in self._readers:
            reader.is_closed = True
        for _ in self._readers:
            self._queue.put(None)
        for reader in self._readers:
            reader.close()


class _Reader:
    def __init__(
        self,
        path: Path,
        limits: Limits,
        on_break: OnBreak,
        queue: SimpleQueue[tuple[Asked, Done] | None],
        number: int,
    ) -> None:
        self._path = path
        self._limits = limits
        self._on_break = on_break
        self._queue = queue
        self.hold = Hold()
        self.is_closed = False
        self._open()
        self._thread = Thread(target=self._serve, name=f"reader-{number}", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        moment = Moment()
        self._connection = opened(self._path, Role.READER, moment)
        self._bundles = Bundles(self._connection, moment, self._limits)

    def stop(self) -> None:
        self.hold.stop(self._connection.interrupt)
        self._connection.close()

    def go_on(self) -> None:
        self._open()
        self.hold.go_on()

    def close(self) -> None:
        while self._thread.is_alive():
            self.hold.go_on()
            with suppress(apsw.ConnectionClosedError):  # it was stopped
                self._connection.interrupt()
            self._thread.join(0.02)
        self._connection.close()

    def _serve(self) -> None:
        while (waiting := self._queue.get()) is not None and not self.is_closed:
            try:
                self._answer(*waiting)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no outcome
                self._on_break("a query cannot be answered", error)
                return

    def _answer(self, asked: Asked, done: Done) -> None:
        while not self.is_closed:
            try:
                with self.hold.piece():
                    rows = self._rows(asked)
            except apsw.InterruptError:
                continue  # we were stopped, or are closed
            done(rows)
            return

    def _rows(self, asked: Asked) -> Rows:
        self._connection.execute("BEGIN", prepare_flags=OURS)
        try:
            self._bundles.forget()
            return rows_of(self._bundles, asked, self._bundles.position, self._limits)
        finally:
            self._connection.execute("ROLLBACK", prepare_flags=OURS)
