"""The database port: what the replication engine may ask of a replicated database through `Call`.

A bundle is bytes to the engine and is opened here. Every request names the green position that it is about,
so an adapter can refuse to skip or to repeat, and every answer says where the database stands. An adapter
implements `Database`; the driver runs it away from the cores and hands its answers back as `Answered`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class Apply(msgspec.Struct, frozen=True, gc=False):
    """Apply the bundle at this green position, one transaction. Gated on the bundle's green record."""

    position: int
    bundle: bytes


class Applied(msgspec.Struct, frozen=True, gc=False):
    """Each action has its own outcome: one that fails, fails alike everywhere and stops no other."""

    position: int
    outcomes: bytes
    replies: tuple[bytes, ...]


class Overlay(msgspec.Struct, frozen=True, gc=False):
    """The red bundles, in order, that dirty queries are to see on top of the green state."""

    bundles: tuple[bytes, ...]


class Query(msgspec.Struct, frozen=True, gc=False):
    request: bytes
    dirty: bool = False


class Rows(msgspec.Struct, frozen=True, gc=False):
    position: int
    rows: bytes


class Refused(msgspec.Struct, frozen=True, gc=False):
    """What was asked cannot be done, and why; the database stands where it stood."""

    reason: str


class Database(Protocol):
    """An adapter. Digests are equal on two replicas exactly if their green states are."""

    def open(self) -> Opened: ...
    def apply(self, request: Apply) -> Applied | Refused: ...
    def overlay(self, request: Overlay) -> None: ...
    def query(self, request: Query) -> Rows | Refused: ...
    def snapshot(self) -> tuple[int, Iterator[bytes]]:
        """The green state at the position that is returned, in chunks; holds neither the writer nor the WAL."""

    def restore(self, position: int, chunks: Iterable[bytes]) -> Opened: ...
    def digest(self) -> bytes: ...
