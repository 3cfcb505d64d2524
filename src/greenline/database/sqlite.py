"""SQLite in memory: a replica's database for the simulator, which can be killed and can lose power.

Each action runs in a savepoint of its own, each bundle in one around it; the position and the digests are written in
the same transaction. What was committed survives a kill. What was committed since the last image was taken may be gone
after a power loss: the image is the disk, and `durable` is its position.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections import deque
from hashlib import blake2b

from greenline.database.operations import CONTENTS, REFUSED, SCHEMA, Fails, carry_out
from greenline.kernel.actions import unpack
from greenline.kernel.codec import Garbled
from greenline.kernel.database import (
    Answer,
    Applied,
    Apply,
    Ask,
    Commit,
    Committed,
    Digest,
    DigestOf,
    Open,
    Opened,
    Overlay,
    Query,
    Refused,
    Restore,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
)

DIGEST_BYTES = 16
_POSITION = "CREATE TABLE position (position INTEGER NOT NULL, outcomes BLOB NOT NULL);"


class MemorySqlite:
    def __init__(self, image_every: int = 4) -> None:
        """`image_every`: so many commits may be lost with the power, less one."""
        self._image_every = image_every
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        weakref.finalize(self, self._db.close)
        self._db.executescript(_POSITION + SCHEMA)
        self._db.execute("INSERT INTO position VALUES (0, ?)", (bytes(DIGEST_BYTES),))
        self._image = self._db.serialize()
        self._durable = 0
        self._commits = 0
        """Since the image was taken."""
        self._open: deque[Applied] = deque()
        self._bundles: deque[tuple[bytes, ...]] = deque()
        """What was applied and not committed: the answers and the bundles."""
        self._red: tuple[bytes, ...] = ()

    def answer(self, request: Ask) -> Answer:
        match request:
            case Open():
                return self._opened()
            case Apply(position, bundle):
                return self._apply(position, bundle)
            case Commit(position):
                return self._commit(position)
            case Overlay(bundles):
                self._red = bundles
                return self._opened()
            case Query(body, dirty):
                return self._query(body, dirty)
            case SnapshotBegin() | SnapshotChunk() | Restore():
                return Refused("this database gives and takes no snapshots")
            case DigestOf():
                return Digest(self.position, self._digest())

    @property
    def position(self) -> int:
        """Of the last bundle that was applied, committed or not."""
        return self._stands()[0]

    @property
    def committed(self) -> int:
        return self.position - len(self._open)

    # How it dies.

    def kill(self) -> None:
        """The process is gone: what was committed is kept."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._forget_what_is_open()

    def lose_power(self) -> None:
        """The machine is gone: back to what the disk has."""
        self.kill()
        self._db.deserialize(self._image)
        self._commits = 0

    def _forget_what_is_open(self) -> None:
        self._open.clear()
        self._bundles.clear()
        self._red = ()

    # What it is asked.

    def _opened(self) -> Opened:
        position, outcomes = self._stands()
        return Opened(position, outcomes, self._durable)

    def _apply(self, position: int, bundle: tuple[bytes, ...]) -> Answer:
        stands, outcomes = self._stands()
        if position != stands + 1:
            return Refused(f"bundle {position} after {stands}: one would be skipped or repeated")
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute(f"SAVEPOINT bundle_{position}")
        try:
            replies = tuple(self._act(action.body) for chunk in bundle for action in unpack(chunk))
        except Garbled as error:
            self._roll_back_to(position)
            return Refused(str(error))
        chained = _chained(outcomes, position, replies)
        self._db.execute("UPDATE position SET position = ?, outcomes = ?", (position, chained))
        applied = Applied(position, chained, replies)
        self._open.append(applied)
        self._bundles.append(bundle)
        return applied

    def _act(self, body: bytes) -> bytes:
        """One action, alone: if it fails, nothing of it is left, and the others do not notice."""
        self._db.execute("SAVEPOINT action")
        try:
            outcome = carry_out(self._db, body)
        except (Fails, sqlite3.IntegrityError) as error:
            self._db.execute("ROLLBACK TO action")
            outcome = str(error) if isinstance(error, Fails) else REFUSED
        self._db.execute("RELEASE action")
        return outcome.encode()

    def _commit(self, position: int) -> Answer:
        """A transaction cannot be split: what is beyond is undone, and done again in the next one."""
        if not self.committed <= position <= self.position:
            return Refused(f"commit {position}: {self.committed} is committed, and {self.position} applied")
        if position == self.committed:
            return Committed(position, self._durable)
        beyond = list(zip(self._open, self._bundles, strict=True))[position - self.committed :]
        if beyond:
            self._roll_back_to(position + 1)
        self._db.execute("COMMIT")
        self._take_image_now_and_then()
        self._open.clear()
        self._bundles.clear()
        for before, bundle in beyond:
            again = self._apply(before.position, bundle)
            assert again == before, f"bundle {before.position} came to {before} and then to {again}"
        return Committed(position, self._durable)

    def _take_image_now_and_then(self) -> None:
        self._commits += 1
        if self._commits >= self._image_every:
            self._image = self._db.serialize()
            self._durable = self.position
            self._commits = 0

    def _query(self, body: bytes, dirty: bool) -> Answer:
        """Whatever it changes is undone."""
        self._db.execute("SAVEPOINT query")
        try:
            for chunk in self._red if dirty else ():
                for action in unpack(chunk):
                    self._act(action.body)
            return Rows(self.position, self._act(body))
        except Garbled as error:
            return Refused(str(error))
        finally:
            self._db.execute("ROLLBACK TO query")
            self._db.execute("RELEASE query")

    def _roll_back_to(self, position: int) -> None:
        """Undo this bundle, and those after it."""
        self._db.execute(f"ROLLBACK TO bundle_{position}")
        self._db.execute(f"RELEASE bundle_{position}")

    def _stands(self) -> tuple[int, bytes]:
        position, outcomes = self._db.execute("SELECT position, outcomes FROM position").fetchone()
        return position, outcomes

    def _digest(self) -> bytes:
        """Of all that can be asked for, and of all outcomes."""
        digest = blake2b(self._stands()[1], digest_size=DIGEST_BYTES)
        for query in CONTENTS:
            digest.update(repr(self._db.execute(query).fetchall()).encode())
        return digest.digest()


def _chained(before: bytes, position: int, replies: tuple[bytes, ...]) -> bytes:
    digest = blake2b(before, digest_size=DIGEST_BYTES)
    digest.update(b"%d" % position)
    for reply in replies:
        digest.update(b" %d " % len(reply) + reply)
    return digest.digest()
