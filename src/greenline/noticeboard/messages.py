"""Messages: what peers say, and what the disk keeps.

A notice is named by its author, the author's life and its number in that life. A number alone would name
two notices after a restart, since each life counts from 1.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from greenline.kernel.identities import NAME, MessageId, ProcId
from greenline.kernel.ports import Service

Name = Annotated[ProcId, msgspec.Meta(pattern=NAME)]
Count = Annotated[int, msgspec.Meta(ge=1)]
"""What does not fit these is no message: it is dropped and counted before any phase sees it."""


class Chapter(NamedTuple):
    """One life of one author: the unit in which notices are counted."""

    author: ProcId
    life: int


class Notice(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """A notice, on the wire and on disk."""

    author: Name
    life: Count
    number: Count
    service: Service
    text: bytes

    @property
    def chapter(self) -> Chapter:
        return Chapter(self.author, self.life)

    @property
    def message(self) -> MessageId:
        return MessageId(self.author, self.life, self.number)


class Summary(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """How many notices of each chapter the sender holds, without a gap, sorted."""

    held: tuple[tuple[Name, Count, Count], ...]


Message = Notice | Summary
"""What travels between processes."""
