"""SQLite in memory: a replica's database for the simulator, which can be killed and can lose power.

Each bundle runs in a savepoint of its own; the position and the digests are written in the same transaction. What was
committed survives a kill. What was committed since the last image was taken may be gone after a power loss: the image
is the disk, and `durable` is its position. Chunks of another's snapshot are kept beside it, in the cache of that disk:
a kill leaves them, a power loss takes them all. A snapshot that is held is memory only.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from greenline.database.procedures import PROCEDURES, Lacking, Procedure
from greenline.database.snapshots import Snapshot
from greenline.database.state import State
from greenline.kernel.actions import Outcome, OutcomeOf, Verdict, digest_of, opened
from greenline.kernel.codec import Garbled
from greenline.kernel.database import (
    Answer,
    Applied,
    Apply,
    Ask,
    Chunk,
    Commit,
    Committed,
    Compare,
    Digest,
    DigestOf,
    Lacks,
    Open,
    Opened,
    Overlay,
    Query,
    Refused,
    Restore,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotEnd,
    SnapshotHeld,
    Stage,
    Staged,
)

Bundle = tuple[bytes, ...]


GARBLED = b"it cannot be opened"


class MemorySqlite:
    def __init__(
        self, image_every: int = 4, chunk_rows: int = 8, procedures: tuple[Procedure, ...] = PROCEDURES
    ) -> None:
        """`image_every`: so many commits may be lost with the power, less one. `chunk_rows`: the usual size of a chunk;
        chunks are worth comparing only among those who agree on it."""
        self._image_every = image_every
        self._chunk_rows = chunk_rows
        # It is used by one thread, but closed by whichever one collects it.
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._db.close)
        self._state = State(self._db, procedures)
        self._state.create()
        self._image = self._db.serialize()
        self._durable = 0
        self._commits = 0
        """Since the image was taken."""
        self._open: deque[tuple[Apply, Applied]] = deque()
        """What was applied and not committed."""
        self._overlay: tuple[Bundle, ...] = ()
        self._held: Snapshot | None = None
        self._staged: dict[bytes, bytes] = {}
        """Chunks of another's snapshot, by their digests."""

    def answer(self, request: Ask) -> Answer:
        match request:
            case Open():
                return self._opened()
            case Apply():
                return self._apply(request)
            case Commit(position):
                return self._commit(position)
            case Overlay(bundles):
                self._overlay = bundles
                return self._opened()
            case Query(asked, is_dirty):
                return self._query(asked, is_dirty)
            case SnapshotBegin():
                return self._hold()
            case SnapshotChunk(position, number):
                return self._chunk(position, number)
            case SnapshotEnd():
                self._held = None
                return self._opened()
            case Compare(digests):
                return self._compare(digests)
            case Stage(data):
                digest = digest_of(data)
                self._staged[digest] = data
                return Staged(digest)
            case Restore():
                return self._restore(request)
            case DigestOf():
                return Digest(self.position, self._state.digest())

    @property
    def position(self) -> int:
        """Of the last bundle that was applied, committed or not."""
        return self._state.stands()[0]

    @property
    def committed(self) -> int:
        return self.position - len(self._open)

    @property
    def pages(self) -> int:
        """How large it is; what was freed is used again."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        return int(pages)

    # How it dies.

    def kill(self) -> None:
        """The process is gone: what was committed is kept, and what was staged."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._forget()

    def lose_power(self) -> None:
        """The machine is gone: back to what the disk has."""
        self.kill()
        self._staged.clear()
        self._db.deserialize(self._image)
        self._commits = 0

    def _forget(self) -> None:
        """All that is in memory only."""
        self._open.clear()
        self._overlay = ()
        self._held = None

    # Bundles.

    def _opened(self) -> Opened:
        position, outcomes = self._state.stands()
        return Opened(position, outcomes, self._durable, self._state.basis())

    def _apply(self, request: Apply) -> Answer:
        position, stands = request.position, self.position
        if position != stands + 1:
            return Refused(f"bundle {position} after {stands}: one would be skipped or repeated")
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute(f"SAVEPOINT bundle_{position}")
        try:
            for system in request.system:
                self._state.order(system, position)
            replies = self._decide(position, request.bundle)
        except Lacking as error:
            self._roll_back_to(position)
            return Refused(str(error))
        applied = Applied(position, self._state.move_on(position, replies), replies)
        self._open.append((request, applied))
        return applied

    def _decide(self, position: int, bundle: Bundle) -> tuple[Outcome, ...]:
        return tuple(
            [
                Outcome(Verdict.FAILED, GARBLED, position, sub)
                if action is None
                else self._state.decide(action, position, sub)
                for sub, action in enumerate(opened(bundle))
            ]
        )

    def _commit(self, position: int) -> Answer:
        """A transaction cannot be split: what is beyond is undone, and done again in the next one."""
        committed = self.committed
        if not committed <= position <= self.position:
            return Refused(f"commit {position}: {committed} is committed, and {self.position} applied")
        if position == committed:
            return Committed(position, self._durable)
        beyond = [self._open[n] for n in range(position - committed, len(self._open))]
        if beyond:
            self._roll_back_to(position + 1)
        self._db.execute("COMMIT")
        self._open.clear()
        self._commits += 1
        if self._commits >= self._image_every:
            self._take_image()
        self._apply_again(beyond)
        return Committed(position, self._durable)

    def _apply_again(self, undone: list[tuple[Apply, Applied]]) -> None:
        for request, before in undone:
            again = self._apply(request)
            assert again == before, f"bundle {before.position} came to {before} and then to {again}"

    def _take_image(self) -> None:
        self._image = self._db.serialize()
        self._durable = self.position
        self._commits = 0

    def _roll_back_to(self, position: int) -> None:
        """Undo this bundle, and those after it."""
        self._db.execute(f"ROLLBACK TO bundle_{position}")
        self._db.execute(f"RELEASE bundle_{position}")

    # Queries.

    def _query(self, asked: bytes | OutcomeOf, is_dirty: bool) -> Answer:
        """Whatever it changes is undone."""
        position = self.position
        self._db.execute("SAVEPOINT query")
        try:
            for ahead, bundle in enumerate(self._overlay if is_dirty else (), 1):
                self._decide(position + ahead, bundle)
            if isinstance(asked, OutcomeOf):
                return Rows(position, b"", self._state.outcome_of(asked))
            return Rows(position, self._state.ask(asked))
        except Lacking as error:
            return Refused(str(error))
        finally:
            self._db.execute("ROLLBACK TO query")
            self._db.execute("RELEASE query")

    # Snapshots.

    @contextmanager
    def _only_what_is_committed(self) -> Iterator[None]:
        """What is open is undone, and done again."""
        undone = list(self._open)
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._open.clear()
        yield
        self._apply_again(undone)

    def _snapshot(self) -> Snapshot:
        with self._only_what_is_committed():
            return self._state.snapshot(self._chunk_rows)

    def _hold(self) -> Answer:
        self._held = self._snapshot()
        return SnapshotHeld(self._held.position, tuple(self._held.chunks))

    def _chunk(self, position: int, number: int) -> Answer:
        if self._held is None or self._held.position != position:
            return Refused(f"no snapshot of position {position} is held")
        if not 0 <= number < len(self._held.chunks):
            return Refused(f"the snapshot of position {position} has no chunk {number}")
        return Chunk(position, number, list(self._held.chunks.values())[number])

    def _compare(self, digests: tuple[bytes, ...]) -> Answer:
        here = self._staged.keys() | self._snapshot().chunks.keys()
        return Lacks(tuple(number for number, digest in enumerate(digests) if digest not in here))

    def _restore(self, request: Restore) -> Answer:
        here = {**self._snapshot().chunks, **self._staged}
        if lacking := [number for number, digest in enumerate(request.digests) if digest not in here]:
            return Refused(f"chunks {' '.join(map(str, lacking))} of {len(request.digests)} are lacking")
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute("SAVEPOINT restoring")
        try:
            self._state.become(request.position, {digest: here[digest] for digest in request.digests}, request.basis)
        except Garbled as error:
            self._db.execute("ROLLBACK TO restoring")
            self._db.execute("RELEASE restoring")
            return Refused(str(error))
        self._db.execute("COMMIT")
        self._forget()
        self._staged.clear()
        self._take_image()
        return self._opened()
