"""The follower: takes the order as it comes, applies it to a database of its own, and writes what it did to an archive.

The archive is ahead of the database, never behind: bundles are applied in a transaction, their segments are written and
forced to the disk, and only then is the transaction committed. So a kill at any moment, or a loss of power, loses
nothing that was told: what the archive has and the database has not is applied again, from the archive itself, to the
same outcomes. A database that is damaged or gone is made anew in the same way.

An order that is not there from its beginning, because it was discarded, or because the cluster began with a backup, is
followed from a base: the file that `greenline backup` makes of a replica. Whoever follows a cluster is compared with a
replica once, as soon as possible: if the cluster did not begin with nothing, the follower says so and stops.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import apsw
import msgspec

from greenline.access import wire
from greenline.database.sqlite import tables
from greenline.pipeline import collecting
from greenline.pipeline.archive import LOCK_S, Archive, locked
from greenline.pipeline.changes import packed
from greenline.pipeline.clerk import Clerk, NotWritten
from greenline.pipeline.reaching import Reach
from greenline.pipeline.reading import Chain, Discarded, NotRead, Order, Piece, Place
from greenline.pipeline.rows_outcomes import came
from greenline.pipeline.segments import Segment, force, merge, mergeable, remove_unused, write
from greenline.pipeline.tables_inserting import forget_prepared
from greenline.pipeline.twin import Twin, Unusable

DATABASE = "follower"
"""Where its database is, in the archive's directory, unless it is told another place."""
BASE = "base.db"
CHECKED = "checked"
"""This file says that a replica had the same state at some position."""
PAUSE_S = 0.5
"""Until the order is asked for again, when it had nothing new."""
LONG = 200
"""Positions to go, most likely with more actions than a segment takes: the clerk comes while the first are applied."""

Stands = Callable[[], wire.Stands]
"""Asks a replica where it stands, and what its state comes to there."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done together."""

    segment_actions: int = 50_000
    segment_bytes: int = 16 << 20
    segment_changes: int = 64 << 20
    """What rows that were changed take in memory, about."""
    transaction_segments: int = 32
    """All but the last are written while the next are applied; for those is waited, and the database is committed."""
    transaction_bundles: int = 20_000


class Differs(Exception):
    """The follower's database is not what a replica's is: nothing that is told of it can be relied on."""


class Follower:
    """It is to be closed, or used by `with`."""

    def __init__(
        self,
        archive: Archive,
        order: Order,
        *,
        stands: Stands | None = None,
        database: Path | None = None,
        base: Path | None = None,
        sizes: Sizes = Sizes(),  # noqa: B008
        prepares: bool = False,
        patience_s: float = LOCK_S,
    ) -> None:
        """`base`: what `greenline backup` has made, for an archive that is still empty. `prepares`: tables are made of
        the archive, and what is inserted into them is made ready for it. `patience_s`: for another one to end.

        Raises `InUse`, `NotRead`, `NotWritten` or `Unusable`.
        """
        self.archive = archive
        self.newest = 0
        """How far the order went when it was last asked."""
        self._order = order
        self._stands = stands
        self._sizes = sizes
        self._prepares = prepares
        self._directory = database or archive.path / DATABASE
        self._checked = archive.path / CHECKED
        self._pending: wire.Stands | None = None
        """What a replica has said, that we come to."""
        self._comparisons = 0
        self._is_sound = True
        # For its owner alone: bundles, and the database, hold what passwords are checked against.
        archive.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = locked(archive.path, patience_s=patience_s)
        try:
            archive.refresh()
            with self._writing():
                self._remove_unused()
                forget_prepared(archive.path)
                self._twin = self._begun(base)
        except BaseException:
            os.close(self._lock)
            raise
        self._clerk: Clerk | None = None
        """Only for who has more to apply while a segment is written."""
        self._place = Place(self._twin.position, archive.digest_at(self._twin.position))
        self._schema = self._twin.schema
        self._written = self._bundles = 0
        """In this transaction: segments, and bundles."""
        self._begin_segment()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """What is not archived is taken again by the next one."""
        try:
            try:
                if self._clerk is not None:
                    self._clerk.close()
            finally:
                self._twin.close()
        finally:
            os.close(self._lock)

    @property
    def position(self) -> int:
        return self._place.position

    def advance(self, limit: int | None = None) -> int:
        """Take what the order has by now, at most so many positions; then the last position that is archived.

        Raises `NotRead`, `NotWritten` or `Differs`.
        """
        if not self._is_sound:
            raise NotWritten("this follower has failed before: close it and begin another, which goes on where it was")
        newest = self._asked()
        goal = newest if limit is None else min(newest, self.position + limit)
        goal, before = self._goal(goal), self.position
        if goal > self.position:
            self._go_to(goal)
        with self._writing():
            if goal > before:
                self._merge()
            if self._pending is not None and self.position == self._pending.position:
                self._compare(self._pending)
        return self.archive.last

    def run(self, until: int | None = None, is_over: Callable[[], bool] = lambda: False) -> None:
        """Go on until a position is archived, or it is over."""
        while not is_over() and (until is None or self.position < until):
            before = self.position
            if self.advance(None if until is None else until - before) == before:
                time.sleep(PAUSE_S)

    def verify(self) -> int:
        """Come to where a replica stands, and compare; then that position. Raises what `advance` does."""
        if self._stands is None:
            raise ValueError("there is nobody to compare with: a follower of a running cluster is given `stands`")
        comparisons, before = self._comparisons, -1
        while self._comparisons == comparisons:
            if self.position == before:
                time.sleep(PAUSE_S)  # whoever we ask is behind the replica that we are compared with
            before = self.position
            self._pending = self._pending or self._stands()
            self.advance()
        return self.position

    # Beginning.

    def _begun(self, base: Path | None) -> Twin:
        archive = self.archive
        kept = archive.path / BASE
        if base is not None and archive.last:
            raise NotRead(f"{archive} has begun already, at position {archive.first}: only a new one is given a base")
        if base is not None:
            self._forget_database()  # of somebody who began without it, or with another
            aside = kept.with_name(f"{BASE}.part")
            shutil.copyfile(base, aside)
            force(aside)
            aside.replace(kept)
        try:
            twin = self._opened(kept)
            if not archive.last:
                self._write_base(twin, kept)
        except (NotRead, Unusable) as error:
            if base is None:
                raise
            self._forget_database()
            kept.unlink()
            why = "it is damaged, or no file that `greenline backup` has made" if _is_damage(error) else error
            raise NotRead(f"{base} cannot be what this archive begins with: {why}") from None
        if twin.position > archive.last:
            twin.close()
            raise NotRead(
                f"the follower's database in {self._directory} stands at {twin.position}, {archive} ends at "
                f"{archive.last}: bring back its segments; or remove that directory, and it is made anew from them"
            )
        if twin.position < archive.last:
            self._replay(twin)
        return twin

    def _opened(self, base: Path) -> Twin:
        """Its database; a new one, with what the base has, if there is none that can be used."""
        database = self._directory / tables.FILE
        if database.exists():
            try:
                twin = Twin(self._directory)
            except Unusable as error:
                if not _is_damage(error):
                    raise
            else:
                if twin.position >= self.archive.base:
                    return twin
                twin.close()
        self._forget_database()
        if base.exists():
            self._directory.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(base, database)
        return Twin(self._directory)

    def _forget_database(self) -> None:
        for each in self._directory.glob(f"{tables.FILE}*"):
            each.unlink()

    def _write_base(self, twin: Twin, base: Path) -> None:
        """The state that the archive begins with, if it does not begin with nothing."""
        if not base.exists():
            return
        position = twin.position
        (place,) = self._order.places([position])
        if not place.digest:
            twin.close()
            raise NotRead(
                f"the base is the state at position {position}, and {self._order} does not tell what the order comes "
                "to there: it is of another cluster, or too old; take a new one with `greenline backup`"
            )
        rows = list(map(packed, twin.rows()))
        segment = Segment(place.digest, [(position, twin.tables)], changes=[(position, rows)], base=position)
        write(self.archive.path, segment)
        self.archive.refresh()

    def _replay(self, twin: Twin) -> None:
        """What the archive has and the database has not."""
        archive, at = self.archive, twin.position
        for piece in archive.pieces(Place(at, archive.digest_at(at)), archive.last):
            for bundle in piece.bundles:
                twin.apply(bundle)
            twin.commit()

    # Going on.

    def _go_to(self, goal: int) -> None:
        """What was taken before something cannot be read is kept. If it cannot be written, this follower is over: what
        its database holds and has not committed is in nobody's segment."""
        self._is_sound = False
        with self._writing():
            try:
                if goal - self.position >= LONG:
                    self._call_clerk()
                for piece in self._order.pieces(self._place, goal):
                    with collecting.paused():
                        self._take(piece)
            except NotRead as error:
                self._settle()
                self._is_sound = True
                raise (self._gap(error) if isinstance(error, Discarded) else error) from None
            self._settle()
            self._is_sound = True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A disk that is full, say, is told as what it is."""
        try:
            yield
        except apsw.Error as error:
            raise NotWritten(f"the follower's database in {self._directory} has failed: {error}") from None
        except OSError as error:
            where = error.filename or self.archive.path
            raise NotWritten(
                f"following into {self.archive.path} has failed: {where}: {error.strerror or error}"
            ) from None

    def _asked(self) -> int:
        """How far the order goes by now, if it is ours. One that is behind us is asked again later."""
        newest = self._order.newest()
        self.newest = max(self.newest, newest.position)
        if self.archive.base <= newest.position <= self.position and newest.digest:
            Chain(Place(newest.position, self.archive.digest_at(newest.position)), str(self._order)).expect(newest)
        return newest.position

    def _take(self, piece: Piece) -> None:
        """Bundles that are known to be the next ones."""
        for bundle, digest in zip(piece.bundles, piece.digests, strict=True):
            outcomes, changes = self._twin.apply(bundle)
            known = came(outcomes)
            position, segment = bundle.position, self._segment
            segment.bundles.append(bundle)
            segment.digests.append(digest)
            segment.outcomes.append(known)
            if changes:
                segment.changes.append((position, list(map(packed, changes))))
                self._changes += sum(each.size for each in segment.changes[-1][1])
            if self._twin.schema != self._schema:
                self._schema = self._twin.schema
                segment.schemas.append((position, self._twin.tables))
            self._place = Place(position, digest)
            self._bundles += 1
            self._actions += len(outcomes)
            self._bytes += sum(map(len, bundle.actions)) + sum(map(len, known.values))
            self._cut_if_full()

    def _cut_if_full(self) -> None:
        sizes = self._sizes
        if self._bundles >= sizes.transaction_bundles:
            self._settle()
        elif (
            self._actions >= sizes.segment_actions
            or self._bytes >= sizes.segment_bytes
            or self._changes >= sizes.segment_changes
        ):
            self._cut()
            if self._written >= sizes.transaction_segments:
                self._settle()

    def _cut(self) -> None:
        self._call_clerk().write(self._segment)
        self._begin_segment()
        self._written += 1

    def _call_clerk(self) -> Clerk:
        if self._clerk is None:
            self._clerk = Clerk(self.archive.path, self._lock, prepares=self._prepares)
        return self._clerk

    def _settle(self) -> None:
        """All that was taken is archived, and then committed."""
        if self._clerk is not None:
            if self._segment.bundles:
                self._cut()
            self._clerk.finish()
        elif self._segment.bundles:
            try:
                write(self.archive.path, self._segment)
            except OSError as error:
                raise NotWritten.of(error, self.archive.path) from None
            self._begin_segment()
        self._twin.commit()
        self._written = self._bundles = 0
        self.archive.refresh()

    def _merge(self) -> None:
        """Small segments into larger ones."""
        manifests = self.archive.manifests()
        if count := mergeable(manifests):
            merge(self.archive.path, manifests[-count:])
            self.archive.refresh()
            self._remove_unused()

    def _remove_unused(self) -> None:
        remove_unused(self.archive.path, {manifest.name for manifest in self.archive.manifests()})

    def _begin_segment(self) -> None:
        self._segment = Segment(self._place.digest, [(self.position, self._twin.tables)])
        self._actions = self._bytes = self._changes = 0

    def _gap(self, gone: Discarded) -> Discarded:
        begin = "begin a new archive with a base, the file that `greenline backup` makes of a replica"
        if self.position == 0:
            return Discarded(f"the order cannot be followed from its beginning ({gone.what}): {begin}")
        return Discarded(
            f"there would be a gap after position {self.position}, where this archive ends ({gone.what}): {begin}"
        )

    # Comparing.

    def _goal(self, goal: int) -> int:
        """Not beyond where we are to be compared with a replica."""
        if self._stands is not None and self._pending is None and not self._checked.exists():
            self._pending = self._stands()
        if self._pending is not None and self._pending.position < self.position:
            self._pending = None  # that replica is behind us: another time
        return goal if self._pending is None else min(goal, self._pending.position)

    def _compare(self, stands: wire.Stands) -> None:
        position, digest = self._twin.digest()
        assert position == stands.position, "states are compared at one position"
        if stands.order and stands.order != self._place.digest:
            raise Differs(f"the order up to position {position} is another one at {stands.where.server}")
        if digest != stands.state:
            raise Differs(
                f"the state at position {position} comes to {digest.hex()} here and to {stands.state.hex()} at "
                f"{stands.where.server}: the cluster began with a backup (then begin a new archive with a base, the "
                "file that `greenline backup` makes of a replica), or this user is no administrator and is not told "
                "everything, or one of both databases is wrong: compare the replicas with each other"
            )
        self._pending = None
        self._comparisons += 1
        self._checked.write_text(f"{position} {stands.where.server}\n")


def _is_damage(error: Exception) -> bool:
    return isinstance(error.__context__, apsw.CorruptError | apsw.NotADBError)


def asks(reach: Reach) -> Stands:
    """A replica of this cluster."""

    async def ask() -> wire.Stands:
        async with reach.connected() as client:
            return await client.digests()

    return lambda: asyncio.run(ask())
