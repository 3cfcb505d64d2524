"""The database port: what the replication engine may ask of a replicated database through `Call`.

A bundle is bytes to the engine and is opened here. Every request names the green position that it is about,
so an adapter can refuse to skip or to repeat, and every answer says where the database stands. An adapter
implements `Database`; the driver runs it away from the cores and hands its answers back as `Answered`. What is
long (a snapshot) travels in chunks, so that nothing waits behind it.

Log before data: bundles are applied as soon as they are green, and committed once their green records are durable. A
crash loses what was applied and not committed, and a power loss perhaps more, but never what `durable` said.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from greenline.kernel.actions import Outcome, OutcomeOf

DATABASE = "database"
"""The name of this port in a `Call`."""


class Open(msgspec.Struct, frozen=True, gc=False):
    """Where do you stand? Answered with `Opened`: what the last committed transaction says of itself."""


class Opened(msgspec.Struct, frozen=True, gc=False):
    position: int
    outcomes: bytes
    """The chained digest of all outcomes up to `position`."""
    durable: int
    """The position that survives also a power loss; up to `position` a kill -9 is survived."""
    basis: bytes = b""
    """What came with the snapshot that it was last restored from."""


class Expire(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Sessions that were not used since this position are over, and so is every unknown one that was named before."""

    before: int


class Activate(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """From here on, who calls this procedure calls this version of it."""

    name: str
    version: int
    digest: bytes


System = Expire | Activate
"""What the engine orders for the database by itself."""


class Apply(msgspec.Struct, frozen=True, gc=False):
    """Apply the bundle at this green position, the next one, in the open transaction. It need not be in the log yet.

    A bundle is one or more chunks, each packed by `kernel.actions`: a large one is not copied together for us. It may
    have none: then only the position moves on. Of a chunk that cannot be opened, every action has failed.
    """

    position: int
    bundle: tuple[bytes, ...]
    system: tuple[System, ...] = ()
    """Before the actions."""


class Applied(msgspec.Struct, frozen=True, gc=False):
    """Each action has its own outcome: one that fails, fails alike everywhere and stops no other."""

    position: int
    outcomes: bytes
    replies: tuple[Outcome, ...]


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Commit what was applied up to this position; what was applied beyond stays open. Gated on its green record."""

    position: int


class Committed(msgspec.Struct, frozen=True, gc=False):
    position: int
    durable: int


class Overlay(msgspec.Struct, frozen=True, gc=False):
    """The bundles, in order, that dirty queries are to see on top of the green state. Answered with `Opened`.

    Each is a tuple of chunks. Requests in them that are decided already, or stand there twice, count once.
    """

    bundles: tuple[tuple[bytes, ...], ...]


class Query(msgspec.Struct, frozen=True, gc=False):
    """It sees all that was applied when it is asked; a dirty one also the overlay. Whatever it changes is undone."""

    request: bytes | OutcomeOf
    is_dirty: bool = False


class Rows(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Query`, and the position that it shows; `outcome` if that was asked for."""

    position: int
    rows: bytes
    outcome: Outcome | None = None


class SnapshotBegin(msgspec.Struct, frozen=True, gc=False):
    """Hold the committed state as it is now, to be read in chunks; it holds neither the writer nor the log.

    One is held at a time: the one before is let go. Answered with `SnapshotHeld`.
    """


class SnapshotHeld(msgspec.Struct, frozen=True, gc=False):
    """Of this position, in chunks that come to these digests: equal parts of equal states are equal chunks."""

    position: int
    digests: tuple[bytes, ...]


class SnapshotChunk(msgspec.Struct, frozen=True, gc=False):
    """Read this chunk of the snapshot of that position, which is held; answered with `Chunk`."""

    position: int
    number: int


class Chunk(msgspec.Struct, frozen=True, gc=False):
    position: int
    number: int
    data: bytes


class SnapshotEnd(msgspec.Struct, frozen=True, gc=False):
    """Let the snapshot go. Answered with `Opened`."""


class Compare(msgspec.Struct, frozen=True, gc=False):
    """Which of these chunks do you lack, that is neither staged nor part of your committed state? Answered: `Lacks`."""

    digests: tuple[bytes, ...]


class Lacks(msgspec.Struct, frozen=True, gc=False):
    numbers: tuple[int, ...]
    """Places in what was asked."""


class Stage(msgspec.Struct, frozen=True, gc=False):
    """A chunk of another's snapshot: keep it aside, across crashes. Answered with `Staged`."""

    data: bytes


class Staged(msgspec.Struct, frozen=True, gc=False):
    digest: bytes


class Restore(msgspec.Struct, frozen=True, gc=False):
    """Become, in one step, what these chunks say; they are staged, or part of your state. Durable when answered, with
    `Opened`, which has `basis` from then on. What was open, applied or staged before is gone."""

    position: int
    digests: tuple[bytes, ...]
    basis: bytes


class DigestOf(msgspec.Struct, frozen=True, gc=False):
    """What does your green state come to?"""


class Digest(msgspec.Struct, frozen=True, gc=False):
    position: int
    digest: bytes


class Refused(msgspec.Struct, frozen=True, gc=False):
    """What was asked cannot be done, and why; the database stands where it stood."""

    reason: str


class Broken(msgspec.Struct, frozen=True, gc=False):
    """The database has failed, in a way that is no outcome: a full disk, a damaged file. It answers nothing more; the
    node stops, and begins again from its disk."""

    reason: str
    is_mistake: bool = False
    """Of ours: it would fail again, so the node stops for good."""


Ask = (
    Open
    | Apply
    | Commit
    | Overlay
    | Query
    | SnapshotBegin
    | SnapshotChunk
    | SnapshotEnd
    | Compare
    | Stage
    | Restore
    | DigestOf
)
Answer = Opened | Applied | Committed | Rows | SnapshotHeld | Chunk | Lacks | Staged | Digest | Refused


class Database(Protocol):
    """An adapter: one request at a time, each answered. Digests are equal exactly if the green states are."""

    def answer(self, request: Ask) -> Answer: ...
