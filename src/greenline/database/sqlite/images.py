"""Images: the committed state copied to a file beside it, in chunks that are equal where the states' rows are.

A chunk is known by its digest, at whichever replica, and one that is there already need not travel. Replicas that came
the same way have the same rows on the same leaves of their trees, but not always the same leaf at the same place in the
file: one that was restored takes other free pages. So the leaves are sent in the order of the trees, and a chunk
ends after a page that says so by what is on it: one page more shifts nothing. Pages that name others (inner nodes, long
values) come last, and where each page belongs is told beforehand, in chunks of its own. Free pages are not sent.

The copy is made in slices, from a transaction that pins the log until it is made and no longer.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import apsw
import msgspec

from greenline.database.sqlite import basis
from greenline.database.sqlite.connection import unhooked
from greenline.database.sqlite.tables import stands, write_meta
from greenline.kernel.actions import digest_of

LONGEST_CHUNK = 64
USUAL_CHUNK = 16
"""In pages."""
LISTING_BYTES = 64 * 1024
PAGES_A_SLICE = 256


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first chunk; then come `listings` chunks that say which page is where, then the pages."""

    position: int
    page_size: int
    pages: int
    listings: int


@dataclass(frozen=True, slots=True)
class Image:
    """A state in a file of its own, which nobody writes to any more."""

    path: Path
    position: int
    page_size: int
    first: tuple[bytes, ...]
    """The chunks before those of pages."""
    order: array[int]
    """The pages, as they are sent."""
    ends: tuple[int, ...]
    """How many of them are sent when each of the chunks is."""
    digests: tuple[bytes, ...]

    def chunk(self, number: int) -> bytes:
        if number < len(self.first):
            return self.first[number]
        number -= len(self.first)
        begin = self.ends[number - 1] if number else 0
        with self.path.open("rb", buffering=0) as file:
            return b"".join(_pages(file.fileno(), self.order[begin : self.ends[number]], self.page_size))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def take(source: Path, target: Path) -> Image:
    """Of the state that is committed now. What stood there before is gone."""
    target.unlink(missing_ok=True)
    position, page_size, count, order = _measured(source, target)
    listing = in_bytes(order)
    listings = [listing[n : n + LISTING_BYTES] for n in range(0, len(listing), LISTING_BYTES)]
    header = _encode(Header(position, page_size, count, len(listings)))
    ends, digests = [0], [digest_of(header), *map(digest_of, listings)]
    with target.open("rb", buffering=0) as file:
        for pages in _cut(_pages(file.fileno(), order, page_size)):
            ends.append(ends[-1] + len(pages))
            digests.append(digest_of(b"".join(pages)))
    return Image(target, position, page_size, (header, *listings), order, tuple(ends[1:]), tuple(digests))


def _measured(source: Path, target: Path) -> tuple[int, int, int, array[int]]:
    """Position, page size, pages, and the order to send them in. Of the copy, so that the log is pinned for less."""
    copy = copied(source, target)
    try:
        write_meta(copy, key="basis", value=basis.NONE)
        count = int(copy.pragma("page_count"))
        return stands(copy).position, int(copy.pragma("page_size")), count, _order(copy)
    finally:
        copy.close()


def copied(source: Path, target: Path) -> apsw.Connection:
    """A copy of what is committed now, made in slices, and a connection to it."""
    copy = passing(target)
    try:
        _copy_into(copy, source)
    except BaseException:
        copy.close()
        raise
    return copy


def _copy_into(copy: apsw.Connection, source: Path) -> None:
    reading = unhooked(source)
    try:
        reading.execute("BEGIN")
        reading.execute("SELECT 1 FROM sqlite_schema").fetchall()
        with copy.backup("main", reading, "main") as backup:
            while not backup.done:
                backup.step(PAGES_A_SLICE)
        reading.execute("ROLLBACK")
    finally:
        reading.close()


def passing(path: Path) -> apsw.Connection:
    """A connection to a file that is of no worth until it is finished: nothing is undone or forced."""
    connection = apsw.Connection(str(path))
    for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    return connection


def _order(copy: apsw.Connection) -> array[int]:
    """Leaves in the order of their trees, then all that names other pages; the first page, which counts, among them."""
    leaves, others = array("I"), array("I")
    for page, kind in copy.execute("SELECT pageno, pagetype FROM dbstat"):
        (leaves if kind == "leaf" and page > 1 else others).append(page)
    return leaves + others


def in_bytes(order: array[int]) -> bytes:
    return _big_endian(order).tobytes()


def from_bytes(listing: bytes) -> array[int]:
    return _big_endian(array("I", listing))


def _big_endian(order: array[int]) -> array[int]:
    turned = array("I", order)
    if sys.byteorder == "little":
        turned.byteswap()
    return turned


def _cut(pages: Iterator[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    for page in pages:
        chunk.append(page)
        if crc32(page) % USUAL_CHUNK == 0 or len(chunk) == LONGEST_CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _pages(file: int, order: array[int], page_size: int) -> Iterator[bytes]:
    for number in order:
        page = os.pread(file, page_size, (number - 1) * page_size)
        yield page if number > 1 else _evened(page)


def _evened(first: bytes) -> bytes:
    """Not how often a replica has changed its file, nor which free pages it has, nor which library it runs."""
    begin, pages, schema, end = first[:24], first[28:32], first[40:92], first[100:]
    return begin[:18] + b"\x01\x01" + begin[20:] + _EVEN + pages + bytes(8) + schema + _EVEN + bytes(4) + end


_EVEN = struct.pack(">I", 1)
_encode = msgspec.msgpack.Encoder().encode
