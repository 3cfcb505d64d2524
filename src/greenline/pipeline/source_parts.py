"""What is read of the order for each schema: from whom, and into which columns.

Spark starts several processes of Python for every query, and each of them imports this: so what only some need is
imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from greenline.pipeline import rows
from greenline.pipeline.reading import AnotherOrder, Both, NotRead, Order, Place, Replicas
from greenline.pipeline.source_options import BUNDLES, CHANGES, Asked

if TYPE_CHECKING:
    from greenline.pipeline.archive import Archive


class Part(Protocol):
    @property
    def schema(self) -> pa.Schema: ...

    @property
    def known(self) -> int:
        """How far the order goes, as it was last seen."""
        ...

    def newest(self, wanted: int | None) -> Place:
        """How far it can be read by now; nobody needs more than is wanted."""
        ...

    def places(self, positions: Sequence[int]) -> list[Place]: ...

    def cuts(self, after: int, to: int, size: int) -> list[int]:
        """Where a range is best cut, so that its parts have about this size."""
        ...

    def read(self, after: Place, to: Place) -> Iterator[pa.RecordBatch]: ...

    def close(self) -> None: ...


def part(asked: Asked, schema: pa.Schema | None = None) -> Part:
    """`schema` is what Spark expects, once it has asked."""
    if asked.schema == BUNDLES:
        return Bundles(order(asked))
    from greenline.pipeline.source_kept import Kept

    return Kept(asked, archive_of(asked), told_by(asked), schema)


def position_of(asked: Asked) -> str:
    """The column that has the position."""
    return "_commit_version" if asked.schema == CHANGES else "position"


def order(asked: Asked) -> Order:
    """Whoever has it: what is archived need not be asked of the cluster."""
    told = told_by(asked)
    if asked.archive is None:
        assert told is not None, "there is a cluster, the files of a node, or an archive"
        return told
    return archive_of(asked) if told is None else Both(archive_of(asked), told)


def archive_of(asked: Asked) -> Archive:
    """One that is still to be begun is there only for who can begin it."""
    from greenline.pipeline.archive import Archive

    assert asked.archive is not None, "it was asked for"
    if told_by(asked) is None and not asked.archive.is_dir():
        raise NotRead(
            f"there is no archive {asked.archive}: see that its directory can be reached from here; or, to begin one, "
            'say of which cluster, by option("at", ADDRESSES)'
        )
    return Archive(asked.archive)


def told_by(asked: Asked) -> Order | None:
    if asked.reach is not None:
        return Replicas(asked.reach, asked.patience)
    if asked.files is None:
        return None
    from greenline.pipeline.source_files import LogFiles

    return LogFiles(asked.files)


class Bundles:
    """The order itself."""

    schema = rows.BUNDLES

    def __init__(self, order: Order) -> None:
        self._order = order
        self.known = 0

    def newest(self, wanted: int | None) -> Place:  # noqa: ARG002  all of it is there
        newest = self._order.newest()
        self.known = newest.position
        return newest

    def places(self, positions: Sequence[int]) -> list[Place]:
        return self._order.places(positions)

    def cuts(self, after: int, to: int, size: int) -> list[int]:
        return list(range(after + size, to, size))

    def read(self, after: Place, to: Place) -> Iterator[pa.RecordBatch]:
        digest = b""
        for piece in self._order.pieces(after, to.position):
            digest = piece.digests[-1]
            yield rows.bundles_batch(piece.bundles, piece.digests)
        if to.digest and digest != to.digest:
            raise AnotherOrder(
                f"the order up to position {to.position} comes to {digest.hex()}, and came to {to.digest.hex()} when "
                "this was planned: nodes of two clusters answer at these addresses, or one was restored from a backup"
            )

    def close(self) -> None:
        """Nothing is held."""
