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


class Apply(msgspec.Struct, frozen=True, gc=False):
    """Apply the bundle at this green position, the next one, in the open transaction. It need not be in the log yet.

    A bundle is one or more chunks, each packed by `kernel.actions`: a large one is not copied together for us.
    """

    position: int
    bundle: tuple[bytes, ...]


class Applied(msgspec.Struct, frozen=True, gc=False):
    """Each action has its own outcome: one that fails, fails alike everywhere and stops no other."""

    position: int
    outcomes: bytes
    replies: tuple[bytes, ...]


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Commit what was applied up to this position; what was applied beyond stays open. Gated on its green record."""

    position: int


class Committed(msgspec.Struct, frozen=True, gc=False):
    position: int
    durable: int


class Overlay(msgspec.Struct, frozen=True, gc=False):
    """The red bundles, in order, that dirty queries are to see on top of the green state. Answered with `Opened`."""

    bundles: tuple[bytes, ...]


class Query(msgspec.Struct, frozen=True, gc=False):
    request: bytes
    dirty: bool = False


class Rows(msgspec.Struct, frozen=True, gc=False):
    position: int
    rows: bytes


class SnapshotBegin(msgspec.Struct, frozen=True, gc=False):
    """Hold the green state as it is now, to be read in chunks; it holds neither the writer nor the log."""


class SnapshotHeld(msgspec.Struct, frozen=True, gc=False):
    position: int
    chunks: int


class SnapshotChunk(msgspec.Struct, frozen=True, gc=False):
    number: int


class Chunk(msgspec.Struct, frozen=True, gc=False):
    number: int
    data: bytes


class Restore(msgspec.Struct, frozen=True, gc=False):
    """One chunk of another's snapshot; the last one replaces our state by it, in one step. Answered with `Opened`."""

    position: int
    chunk: Chunk
    is_last: bool


class DigestOf(msgspec.Struct, frozen=True, gc=False):
    """What does your green state come to?"""


class Digest(msgspec.Struct, frozen=True, gc=False):
    position: int
    digest: bytes


class Refused(msgspec.Struct, frozen=True, gc=False):
    """What was asked cannot be done, and why; the database stands where it stood."""

    reason: str


Ask = Open | Apply | Commit | Overlay | Query | SnapshotBegin | SnapshotChunk | Restore | DigestOf
Answer = Opened | Applied | Committed | Rows | SnapshotHeld | Chunk | Digest | Refused


class Database(Protocol):
    """An adapter: one request at a time, each answered. Digests are equal exactly if the green states are."""

    def answer(self, request: Ask) -> Answer: ...
