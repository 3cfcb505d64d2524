"""The engine's port: what an application asks of a replica, and what it is told.

`Submit` is a downcall, all others are upcalls. What is submitted together stays together: it travels in one bundle, in
the order in which it was given. `Accepted` comes once the bundle is safe at this replica: it will be ordered, now or
after the network has healed. `Replied` comes once it is green, applied, and as durable as was asked for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from greenline.kernel.identities import NAME, ProcId

Name = Annotated[ProcId, msgspec.Meta(pattern=NAME)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]


class BundleId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The papers' action id: who made it, and its number among the bundles of that server, from 1, across lives."""

    creator: Name
    index: Count

    def __str__(self) -> str:
        return f"{self.creator}#{self.index}"


class Level(StrEnum):
    """How durable a green reply is, from least to most."""

    MEMORY = "memory"
    """Green. A crash of the whole primary component before its next forced write may change its place."""
    LOCAL = "local"
    """Its green mark is on this replica's disk: its place survives any crash."""
    QUORUM = "quorum"
    """The green mark is on the disks of a quorum: it survives also the loss of this disk."""


class Submit(msgspec.Struct, frozen=True, gc=False):
    """Order these actions (packed by `kernel.actions`), `count` of them. Tickets are the caller's, new for each.

    The caller has checked them: they are opened by the database only, once they are ordered.
    """

    ticket: int
    actions: bytes
    count: Count
    level: Level = Level.LOCAL


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The bundle that holds them is durable here: red, or already more."""

    ticket: int
    bundle: BundleId


class Replied(msgspec.Struct, frozen=True, gc=False):
    """They are green: the bundle's position, the place of the first of them in it, and an outcome for each."""

    ticket: int
    position: Count
    sub: Natural
    outcomes: tuple[bytes, ...]
    level: Level


class Refused(msgspec.Struct, frozen=True, gc=False):
    """They were not taken, and nothing of them is kept: why, and whether the same may be asked again later."""

    ticket: int
    reason: str
    is_retriable: bool = True
