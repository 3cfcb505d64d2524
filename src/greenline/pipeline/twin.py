"""The twin: a database that is what the replicas' are, for who follows their order and wants to know what it did.

Bundles are applied by the same adapter, to the same outcomes and the same state, in one thread and without what a
replica needs beside (queries, overlays, snapshots). It is committed when whoever follows says so; a kill leaves what
was committed last, and a loss of power that, or what was committed some time before.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw

from greenline.access import wire
from greenline.database.sqlite import content, opening, tables
from greenline.database.sqlite.broken import Unusable
from greenline.database.sqlite.bundles import BEGIN, Bundles
from greenline.database.sqlite.connection import OURS, unhooked
from greenline.database.sqlite.determinism import Moment, tell_local_time_in_utc
from greenline.database.sqlite.failures import too_slow
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.statements import Failure, reply_of
from greenline.pipeline.capture import Capture, Changed, Named, between
from greenline.pipeline.captured import Column
from greenline.pipeline.rows_opened import opened

WAL_BYTES = 64 << 20
"""A write-ahead log that is longer after a commit is brought to the main file, while the next bundles are applied."""
WAL_MOST_BYTES = 512 << 20
"""A longer one begins anew, for which nothing may be applied meanwhile."""
_TOO_SLOW = too_slow("", 0).kind


class Twin:
    def __init__(self, directory: Path, limits: Limits = Limits()) -> None:  # noqa: B008
        """Raises `Unusable` if what is there is damaged, or in use."""
        tell_local_time_in_utc()
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / tables.FILE
        self._lock = opening.Lock(directory)
        try:
            moment = Moment()
            self._connection = opening.writer(self._path, moment, limits, "")
            self._bundles = _Bundles(self._connection, moment, limits)
            self._capture = self._bundles.executor.onlooker = Capture(self._connection)
            # What a savepoint would restore stays in memory: in a file, each of its pages is written by us, in Python.
            self._connection.execute("PRAGMA temp_store = MEMORY", prepare_flags=OURS)
        except BaseException:
            self._lock.release()
            raise
        self._open: list[wire.Bundle] = []
        """Applied, and not committed."""
        self._beside = ThreadPoolExecutor(1, "checkpoint")
        self._checkpointing: Future[None] | None = None

    def close(self) -> None:
        """What is not committed is gone."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK", prepare_flags=OURS)
        self._beside.shutdown()
        with suppress(apsw.Error):  # the next one reads the log of what was committed
            self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART)
        self._connection.close()
        self._lock.release()

    @property
    def position(self) -> int:
        """Applied, committed or not."""
        return self._bundles.position

    @property
    def schema(self) -> int:
        """Another number than before, if the tables have changed."""
        return self._capture.version

    @property
    def tables(self) -> dict[str, tuple[Column, ...]]:
        return self._capture.tables

    def apply(self, bundle: wire.Bundle) -> tuple[tuple[Outcome, ...], list[Changed]]:
        """The next one: what its actions came to, and which rows it has changed."""
        assert bundle.position == self.position + 1, f"position {bundle.position} is applied after {self.position}"
        execute = self._connection.execute
        if not self._connection.in_transaction:
            execute(BEGIN, prepare_flags=OURS)
        execute("SAVEPOINT bundle", prepare_flags=OURS)
        self._capture.begin()
        outcomes = self._bundles.apply(bundle.position, bundle.actions, bundle.system)
        changes = None if _are_stopped(outcomes) else self._capture.changes()
        if changes is None:
            outcomes, changes = self._apply_again(bundle, outcomes)
        if not self._capture.has_vanished:
            execute("RELEASE bundle", prepare_flags=OURS)
        self._open.append(bundle)
        return outcomes, changes

    def rows(self) -> list[Changed]:
        """All that there are, as if each had just been inserted."""
        return between({}, self._capture.look(self._capture.everything()))

    def commit(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT", prepare_flags=OURS)
            self._bundles.committed()
            self._open.clear()
            wal = self._path.with_name(f"{self._path.name}-wal").stat().st_size
            if wal > WAL_BYTES:
                self._bring_over(wal)

    def digest(self) -> tuple[int, bytes]:
        """Where what is committed stands, and what it comes to: the same as a replica's there."""
        connection = unhooked(self._path)
        try:
            return content.digest(connection)
        finally:
            connection.close()

    def _bring_over(self, wal: int) -> None:
        if self._checkpointing is not None:
            self._checkpointing.result()
            self._checkpointing = None
        if wal > WAL_MOST_BYTES:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART)
        else:
            self._checkpointing = self._beside.submit(self._checkpoint, apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _checkpoint(self, mode: int) -> None:
        """On a connection of its own, whose file system is not ours, in Python."""
        connection = unhooked(self._path)
        try:
            connection.wal_checkpoint(mode=mode)
        finally:
            connection.close()

    def _apply_again(
        self, bundle: wire.Bundle, outcomes: tuple[Outcome, ...]
    ) -> tuple[tuple[Outcome, ...], list[Changed]]:
        """A bundle that is odd: undo it, and look before and after."""
        capture, was_stopped = self._capture, _are_stopped(outcomes)
        named = capture.everything() if was_stopped else capture.named(opened(bundle.actions).statements)
        self._undo()
        before = capture.look(named)
        if was_stopped:
            # Deleting all rows of a table takes one step, but many while we are told of each.
            capture.pause()
            self._bundles.executor.onlooker = None
            self._bundles.judge_anew(bundle.position)
        capture.begin()
        try:
            outcomes = self._bundles.apply(bundle.position, bundle.actions, bundle.system)
        finally:
            capture.listen()
            self._bundles.executor.onlooker = capture
        if was_stopped:
            # What was prepared meanwhile clears a table without a word of its rows. SQLite prepares it anew, as it does
            # whenever it is told who authorises.
            self._connection.authorizer = self._connection.authorizer
            named = Named({}, named.whole | capture.everything().whole)
        return outcomes, between(before, capture.look(named))

    def _undo(self) -> None:
        """The last bundle; if an action has rolled back all that was open, then all that is open is done again."""
        execute = self._connection.execute
        if not self._capture.has_vanished:
            execute("ROLLBACK TO bundle", prepare_flags=OURS)
            self._bundles.take_back()
            return
        execute("ROLLBACK", prepare_flags=OURS)
        self._bundles.forget()
        execute(BEGIN, prepare_flags=OURS)
        for each in self._open:
            self._bundles.apply(each.position, each.actions, each.system)
        execute("SAVEPOINT bundle", prepare_flags=OURS)


class _Bundles(Bundles):
    def take_back(self) -> None:
        """The last one was undone; the others of this transaction were not."""
        rest = self._open[:-1]
        self.forget()
        self._open = rest

    def judge_anew(self, position: int) -> None:
        """Its actions that came to the limit of steps may not do so again."""
        for place in [place for place in self._fates if place[0] == position]:
            del self._fates[place]


def _are_stopped(outcomes: tuple[Outcome, ...]) -> bool:
    """Did any of them come to the limit of steps?"""
    if Verdict.FAILED not in {each.verdict for each in outcomes}:
        return False
    for each in outcomes:
        if each.verdict is Verdict.FAILED and not each.is_again:
            reply = reply_of(each.value)
            if isinstance(reply, Failure) and reply.kind == _TOO_SLOW:
                return True
    return False


__all__ = ["Twin", "Unusable"]
