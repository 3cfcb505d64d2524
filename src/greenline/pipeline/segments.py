"""Segments: some consecutive bundles and what they did, written into an archive as a whole or not at all.

Who keeps up with a cluster writes many small ones. Some that follow each other become one: it is complete before they
are removed, so that each position is there at any moment, and for a moment perhaps twice (`Archive.refresh`). Of those
that have become one the manifests go at once, and the files some time later: whoever has listed them may read them.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c

from greenline.access import wire
from greenline.pipeline.archive import ACTIONS, BUNDLES, CHANGES, KINDS, SEGMENTS, File, Manifest, Tables, name_of
from greenline.pipeline.changes import Packed, changes_table
from greenline.pipeline.rows import actions_batch, bundles_batch
from greenline.pipeline.rows_outcomes import Came

COMPRESSION = "zstd"
_WORDS = (
    "origin",
    "component",
    "session",
    "kind",
    "statements.list.element",
    "verdict",
    "table",
    "columns",
    "_change_type",
)
"""Columns with few different values, which are written once each; looking for some in all others takes time."""
_SORTED = ("position", "_commit_version")
"""Columns by which a reader leaves out what it does not want."""
MERGED = 16
"""So many that are small become one."""
GROUP_BYTES = 64 << 20
"""In memory: about as much as a segment has that is written at once."""
LARGEST = 100_000
"""Actions, or rows that were changed, of one that is made of others."""
_TIER_BITS = 4
"""So that a row is written anew once for each factor of 16 that its segment grows by."""
GRACE_S = 600.0
"""So long a file that belongs to no segment any more is kept."""
_ASIDE = ".part"


class Segment(msgspec.Struct, array_like=True):
    before: bytes
    """What the order comes to before it."""
    schemas: list[tuple[int, Tables]]
    bundles: list[wire.Bundle] = []
    digests: list[bytes] = []
    outcomes: list[Came] = []
    changes: list[tuple[int, list[Packed]]] = []
    base: int | None = None
    """It is no part of the order, but the state at this position."""

    @property
    def first(self) -> int:
        return self.bundles[0].position if self.base is None else self.base

    @property
    def last(self) -> int:
        return self.bundles[-1].position if self.base is None else self.base


Prepare = Callable[[Path, str, pa.Table, Tables], None]
"""Is told where an archive is, the name of a segment, its changes, and the tables that there are then."""


def write(path: Path, segment: Segment, prepare: Prepare | None = None) -> Manifest:
    """What it says is on the disk when it returns; whoever wants to prepare something of it has done so before."""
    if segment.base is not None:
        tables = {CHANGES: changes_table(segment.changes, {})}
    else:
        actions = actions_batch(segment.bundles, segment.outcomes)
        positions = [bundle.position for bundle in segment.bundles]
        tables = {
            BUNDLES: pa.Table.from_batches([bundles_batch(segment.bundles, segment.digests)]),
            ACTIONS: pa.Table.from_batches([actions]),
            CHANGES: changes_table(segment.changes, _times(actions, segment.outcomes, positions)),
        }
    digests = segment.digests or [segment.before]
    name = name_of(segment.first, segment.last)
    if prepare is not None:
        prepare(path, name, tables[CHANGES], segment.schemas[-1][1])
    manifest = Manifest(
        first=segment.first,
        last=segment.last,
        before=segment.before.hex(),
        start=digests[0].hex(),
        digest=digests[-1].hex(),
        is_base=segment.base is not None,
        files={kind: _write_rows(path / kind / f"{name}.parquet", [rows]) for kind, rows in tables.items()},
        schemas=segment.schemas,
    )
    _write_manifest(path, manifest)
    return manifest


def mergeable(manifests: Sequence[Manifest]) -> int:
    """How many of the last segments of an archive are to become one; 0: none."""
    sizes = [LARGEST if each.is_base else max(file.rows for file in each.files.values()) for each in manifests]
    for tier in range(LARGEST.bit_length() // _TIER_BITS):
        small = list(takewhile(lambda size: size.bit_length() // _TIER_BITS <= tier, reversed(sizes)))  # noqa: B023
        if len(small) >= MERGED and sum(small) <= LARGEST:
            return len(small)
    return 0


def merge(path: Path, parts: Sequence[Manifest]) -> None:
    """These become one."""
    first, last = parts[0], parts[-1]
    name = name_of(first.first, last.last)
    files = {}
    for kind in KINDS:
        rows = (pq.read_table(path / kind / f"{part.name}.parquet") for part in parts)
        files[kind] = _write_rows(path / kind / f"{name}.parquet", _together(rows))
    schemas = list(first.schemas)
    for part in parts[1:]:
        schemas += part.schemas[1:]  # it begins with what the one before ends with
    merged = msgspec.structs.replace(first, last=last.last, digest=last.digest, files=files, schemas=schemas)
    _write_manifest(path, merged)
    for part in parts:
        discard(path, part.name)
    force(path / SEGMENTS)


def discard(path: Path, name: str) -> None:
    """A segment whose positions are in another one: from now on its files are nobody's."""
    for kind in KINDS:
        file = path / kind / f"{name}.parquet"
        if file.exists():
            os.utime(file)
    (path / SEGMENTS / f"{name}.json").unlink(missing_ok=True)


def remove_unused(path: Path, names: Collection[str], grace: float = GRACE_S) -> None:
    """What belongs to other segments than these: what a follower that was killed has begun, and what has become one
    with others, once it is old enough."""
    for kind in (SEGMENTS, *KINDS):
        (path / kind).mkdir(parents=True, exist_ok=True)
    for each in (path / SEGMENTS).glob("*.json"):
        if each.stem not in names:
            discard(path, each.stem)
    for kind in (SEGMENTS, *KINDS):
        for each in (path / kind).iterdir():
            is_left = each.stem not in names and time.time() - each.stat().st_mtime >= grace
            if each.suffix == _ASIDE or is_left:
                each.unlink()


def _times(actions: pa.RecordBatch, outcomes: Sequence[Came], positions: Sequence[int]) -> dict[int, int]:
    """By position, what its last action that says the time says, in microseconds; of those where one does."""
    times, ends = actions.column("time").cast(pa.int64()), list(accumulate(map(len, outcomes)))
    found: dict[int, int] = {}
    for position, begin, end in zip(positions, [0, *ends], ends, strict=False):
        said = next(
            (time for place in range(end - 1, begin - 1, -1) if (time := times[place].as_py()) is not None), None
        )
        if said is not None:
            found[position] = said
    return found


def _together(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """As many as make a group of rows that is read at once; large ones by themselves."""
    some: list[pa.Table] = []
    for each in tables:
        if some and sum(table.nbytes for table in some) + each.nbytes > GROUP_BYTES:
            yield pa.concat_tables(some)
            some = []
        some.append(each)
    yield pa.concat_tables(some)


def _write_rows(path: Path, groups: Iterable[pa.Table]) -> File:
    """One group after the other: no more than one of them is in memory."""
    aside = path.with_name(path.name + _ASIDE)
    writer: pq.ParquetWriter | None = None
    rows = 0
    try:
        for group in groups:
            if writer is None:
                sorted_by = [name for name in _SORTED if name in group.column_names]
                how = {"compression": COMPRESSION, "use_dictionary": list(_WORDS), "write_statistics": sorted_by}
                writer = pq.ParquetWriter(aside, group.schema, **how)
            writer.write_table(group)
            rows += group.num_rows
    finally:
        if writer is not None:
            writer.close()
    with aside.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = File(rows, len(data), crc32c(data))
    _put(aside, path)
    return found


def _write_manifest(path: Path, manifest: Manifest) -> None:
    target = path / SEGMENTS / f"{manifest.name}.json"
    aside = target.with_name(target.name + _ASIDE)
    aside.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    _put(aside, target)


def _put(aside: Path, path: Path) -> None:
    """In its place, and there also after a loss of power."""
    force(aside)
    aside.replace(path)
    force(path.parent)


def force(path: Path) -> None:
    """A file, or the names in a directory, onto the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
