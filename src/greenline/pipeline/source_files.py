"""The log of a node that does not run, read from its files as the node itself would read it, and left as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from greenline.kernel.codec import Codec, CodecError
from greenline.kernel.recovery import recover as records_of
from greenline.node.desk import told_of
from greenline.node.lock import holder
from greenline.node.log import LogDamaged, frames_in
from greenline.pipeline.reading import KEPT_ELSEWHERE, Chain, Discarded, NotRead, Piece, Place
from greenline.replication.messages import Base, Record
from greenline.replication.recovery import LogRefused, recover
from greenline.replication.replica import Replica
from greenline.replication.settings import Settings
from greenline.ring.messages import Ceiling

_CODECS: dict[int, Codec[Any]] = {1: Codec(1, Ceiling), 2: Codec(2, Record)}
"""As a node numbers its layers: the ring, and the engine."""
_ENGINE = 2
_AT_ONCE = 256
"""Bundles in a piece."""


class LogFiles:
    """The order as one node's log has it."""

    def __init__(self, directory: Path) -> None:
        """`directory` is the node's `data`, or the log in it."""
        self._data = directory.parent if directory.name == "log" else directory

    def __str__(self) -> str:
        return f"the log in {self._data}"

    def newest(self) -> Place:
        replica = self._replica()
        return Place(replica.green, replica.digest)

    def places(self, positions: Sequence[int]) -> list[Place]:
        replica = self._replica()
        return [
            Place(each, replica.digest_at(each) if replica.low <= each <= replica.green else b"") for each in positions
        ]

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        replica = self._replica()
        if after.position < replica.low:
            raise Discarded(
                f"position {after.position + 1} is discarded in {self}, which begins with {replica.low + 1}",
                KEPT_ELSEWHERE,
            )
        if last > replica.green:
            raise NotRead(f"{self} ends with position {replica.green}, and {last} was to be read")
        chain = Chain(after, str(self))
        for first in range(after.position + 1, last + 1, _AT_ONCE):
            end = min(last, first + _AT_ONCE - 1)
            bundles = [told_of(replica, position) for position in range(first, end + 1)]
            yield chain.follow(bundles, replica.digest_at(first - 1), replica.digest_at(end))

    def _replica(self) -> Replica:
        if (pid := holder(self._data)) is not None:
            raise NotRead(
                f"a node runs on {self._data} (pid {pid}), and what it writes is not final before it says so: read "
                'from the node itself, by option("at", HOST:PORT), or stop it first'
            )
        segments = tuple((path.name, path.stat().st_mtime_ns) for path in sorted((self._data / "log").glob("*")))
        return _recovered(self._data, segments)


@lru_cache(maxsize=1)
def _recovered(data: Path, _: tuple[tuple[str, int], ...]) -> Replica:
    """Once for all ranges that a process reads, as long as the files are the same."""
    try:
        records = records_of(frames_in(data / "log"), _CODECS).pasts[_ENGINE].records
        if not records or not isinstance(records[0], Base):
            raise NotRead(f"the log in {data} is that of no replica: a node with a database has run there?")
        # The founders do not matter to who only reads: the servers that exist are in the log itself.
        settings = Settings(tuple(sorted(records[0].roster.servers)))
        base = msgspec.structs.replace(records[0], cluster=settings.cluster)
        return recover(base.server, settings, (base, *records[1:]))
    except (LogDamaged, CodecError, LogRefused, OSError) as error:
        raise NotRead(f"the log in {data} cannot be read: {error}") from None
