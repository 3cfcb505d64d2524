"""The archive: the order of one cluster and what it did, in segments of consecutive positions, kept for good.

    segments/{first}-{last}.json       what the segment holds; it is complete once this is there
    bundles/{first}-{last}.parquet     one row a bundle (`rows.BUNDLES`)
    actions/{first}-{last}.parquet     one row an action, with what it came to (`rows.ACTIONS`)
    changes/{first}-{last}.parquet     one row a row that was changed (`changes.CHANGES`)

A follower writes it, and nobody else. It may begin with a base, the state at some position: then its first segment has
the changes that would lead to that state from nothing, and nothing else.

Which cluster it is of is said by what the order comes to: each bundle is chained to all before it, so that another
cluster's cannot follow.
"""

from __future__ import annotations

import fcntl
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

from greenline.pipeline.captured import Column
from greenline.pipeline.reading import BEGINNING, Chain, Discarded, NotRead, Piece, Place
from greenline.pipeline.rows import bundles_of
from greenline.pipeline.source_table import is_alike

VERSION = 2
KINDS = BUNDLES, ACTIONS, CHANGES = "bundles", "actions", "changes"
SEGMENTS = "segments"
LOCK = "follower.lock"
ATTEMPTS = 3
"""A directory that is listed while segments become one may show neither them nor it."""
LOCK_S = 10.0
"""Whoever wrote it before and was killed may have a segment to finish."""
_BUNDLES_AT_ONCE = 512
_LOOK_S = 0.05

Tables = dict[str, tuple[Column, ...]]
Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})*$")]


class Damaged(NotRead):
    """Something is missing of the archive, or was changed: what, and what to do."""


class InUse(Exception):
    """Another process writes this archive."""


class File(msgspec.Struct, frozen=True):
    rows: int
    bytes: int
    check: int
    """Its CRC-32C."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    first: int
    last: int
    before: Hex
    """What the order comes to before the first of these positions."""
    start: Hex
    """With the first."""
    digest: Hex
    """With the last."""
    is_base: bool = False
    files: dict[str, File]
    schemas: list[tuple[int, Tables]]
    """The tables that there were, each time from a position on; from before the first."""

    @property
    def name(self) -> str:
        return name_of(self.first, self.last)


def name_of(first: int, last: int) -> str:
    return f"{first:020}-{last:020}"


class Archive:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._segments: list[tuple[int, int]] = []
        self._manifests: dict[tuple[int, int], Manifest] = {}
        self.refresh()

    def __str__(self) -> str:
        return f"the archive {self.path}"

    def refresh(self) -> None:
        """What was written since by the follower. Raises `Damaged` if a segment is missing."""
        for attempt in range(ATTEMPTS):
            try:
                self._segments = self._listed()
            except Damaged:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        if self._segments and self._segments[0][0] != 1 and not self.manifests()[0].is_base:
            raise Damaged(
                f"{self} begins at position {self._segments[0][0]}, without a base: bring back what is missing"
            )

    def _listed(self) -> list[tuple[int, int]]:
        """The segments, each position once: those that have become one with others may still be there."""
        found = [_range_of(self.path, path.stem) for path in (self.path / SEGMENTS).glob("*.json")]
        segments: list[tuple[int, int]] = []
        for first, last in sorted(found, key=lambda each: (each[0], -each[1])):
            end = segments[-1][1] if segments else first - 1
            if last <= end:
                continue
            if first != end + 1:
                raise Damaged(
                    f"{self} has nothing between the positions {end} and {first}: bring back what is missing, or make "
                    "a new one"
                )
            segments.append((first, last))
        return segments

    # What there is.

    @property
    def base(self) -> int:
        """The position that it began at, with the state of a replica; 0: at the beginning of the order."""
        return self._segments[0][0] if self._segments and self._manifest(self._segments[0]).is_base else 0

    @property
    def first(self) -> int:
        """The first position whose bundle is here, or would be."""
        return self.base + 1

    @property
    def last(self) -> int:
        """The last position that is here; 0 if nothing is."""
        return self._segments[-1][1] if self._segments else 0

    @property
    def cluster(self) -> str:
        """Whose it is: what the order came to where the archive begins; empty if it is."""
        return self._manifest(self._segments[0]).start if self._segments else ""

    def files(self, kind: str, first: int = 0, last: int | None = None) -> list[Path]:
        """Those with rows of these positions, in order; they may have others too. Raises `Damaged`."""
        try:
            return self._files(kind, first, last)
        except Damaged:
            self.refresh()  # some may have become one meanwhile
            return self._files(kind, first, last)

    def manifests(self) -> list[Manifest]:
        return list(map(self._manifest, self._segments))

    def tables(self, position: int) -> Tables:
        """The tables that there were after a position."""
        if position == 0 and (0, 0) not in self._segments:
            return {}
        manifest = self._manifest(self._segment_of(position))
        return [tables for since, tables in manifest.schemas if since <= position][-1]

    def columns(self, table: str, position: int) -> list[tuple[str, str]]:
        """Names and declared types of a table after a position; none if there was no such table."""
        return [(column.name, column.declared) for column in self.tables(position).get(table, ())]

    def last_seen(self, table: str, last: int) -> int:
        """Of the positions up to `last`, one at which it was there for the last time; `last`, if it never was. By its
        name as it is written, or else in another case."""
        schemas = [each for manifest in self.manifests() for each in manifest.schemas if each[0] <= last]
        for is_it in (str.__eq__, is_alike):
            for since, tables in reversed(schemas):
                if any(is_it(table, name) for name in tables):
                    return max(since, self.base)
        return last

    def digest_at(self, position: int) -> bytes:
        """What the order comes to there. Raises `Discarded` if that is not known here."""
        try:
            return self._digest_at(position)
        except Damaged:
            self.refresh()  # some segments may have become one meanwhile
            return self._digest_at(position)

    def _digest_at(self, position: int) -> bytes:
        if position == 0 and (0, 0) not in self._segments:
            return BEGINNING.digest
        manifest = self._manifest(self._segment_of(position))
        if position == manifest.last:
            return bytes.fromhex(manifest.digest)
        found = pq.read_table(
            self._file(manifest, BUNDLES), columns=["digest"], filters=[("position", "=", position)]
        ).column(0)
        return bytes(found[0].as_py())

    def check_reach(self, position: int) -> None:
        """Is it known what tables held after a position? Raises `Discarded`."""
        if not self.base <= position <= self.last:
            raise Discarded(
                f"{self} knows the tables after the positions {self.base} to {self.last}, not after {position}: "
                "let its follower go on, or ask for another"
            )

    def check(self, first: int = 0, last: int | None = None) -> None:
        """Read every byte of the segments that have these positions. Raises `Damaged`."""
        for manifest in self._having(first, last):
            for kind, file in manifest.files.items():
                path = self._file(manifest, kind)
                if crc32c(path.read_bytes()) != file.check:
                    raise _damaged(path, manifest, "is not what was written")

    # As an order.

    def newest(self) -> Place:
        return Place(self.last, self.digest_at(self.last))

    def places(self, positions: Sequence[int]) -> list[Place]:
        return [Place(position, self.digest_at(position)) for position in positions]

    def pieces(self, after: Place, last: int) -> Iterator[Piece]:
        """The bundles from there to this position, checked. Raises `NotRead`."""
        if after.position < self.base or last > self.last:
            raise Discarded(f"{self} has the positions {self.first} to {self.last}, not {after.position + 1} to {last}")
        chain = Chain(after, str(self))
        for path in self.files(BUNDLES, after.position + 1, last):
            for batch in _batches(path):
                positions = batch.column("position")
                start = max(0, chain.place.position + 1 - positions[0].as_py())
                some = batch.slice(start, max(0, last - chain.place.position))
                if some.num_rows:
                    yield chain.follow(bundles_of(some), b"", some.column("digest")[-1].as_py())

    # How.

    def _files(self, kind: str, first: int, last: int | None) -> list[Path]:
        return [self._file(manifest, kind) for manifest in self._having(first, last) if kind in manifest.files]

    def _having(self, first: int, last: int | None) -> list[Manifest]:
        wanted = [each for each in self._segments if each[1] >= first and (last is None or each[0] <= last)]
        return list(map(self._manifest, wanted))

    def _segment_of(self, position: int) -> tuple[int, int]:
        place = bisect_left(self._segments, position, key=lambda each: each[1])
        if place == len(self._segments) or self._segments[place][0] > position:
            raise Discarded(f"{self} has the positions {self.first} to {self.last}, not {position}")
        return self._segments[place]

    def _manifest(self, segment: tuple[int, int]) -> Manifest:
        if segment not in self._manifests:
            path = self.path / SEGMENTS / f"{name_of(*segment)}.json"
            try:
                found = msgspec.json.decode(path.read_bytes(), type=Manifest)
            except (msgspec.DecodeError, OSError) as error:
                raise Damaged(f"{path} cannot be read: {error}; bring it back, or make a new archive") from None
            if found.version != VERSION:
                raise Damaged(f"{path} has the form {found.version}, we know {VERSION}: use the Greenline that made it")
            self._manifests[segment] = found
        return self._manifests[segment]

    def _file(self, manifest: Manifest, kind: str) -> Path:
        path = self.path / kind / f"{manifest.name}.parquet"
        wanted = manifest.files[kind].bytes
        try:
            size = path.stat().st_size
        except OSError as error:
            raise _damaged(path, manifest, f"cannot be read ({error.strerror})") from None
        if size != wanted:
            raise _damaged(path, manifest, f"has {size} bytes and had {wanted}")
        return path


def locked(
    path: Path, name: str = LOCK, held: str = "another follower writes the archive", patience_s: float = LOCK_S
) -> int:
    """A directory, for one writer; the file that holds it so is closed by whoever is done. Raises `InUse`."""
    file = os.open(path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= until:
                os.close(file)
                raise InUse(f"{held} {path}: stop it, or use what it writes") from None
            time.sleep(_LOOK_S)
        else:
            return file


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(_BUNDLES_AT_ONCE)


def _range_of(path: Path, name: str) -> tuple[int, int]:
    first, _, last = name.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise Damaged(f"{path / SEGMENTS / name}.json is no segment's: move it away")
    return int(first), int(last)


def _damaged(path: Path, manifest: Manifest, what: str) -> Damaged:
    return Damaged(
        f"{path} {what}: bring it back; or, while the cluster still has position {manifest.first}, remove the segments "
        "from this one on and the follower's database, and let it go on"
    )
