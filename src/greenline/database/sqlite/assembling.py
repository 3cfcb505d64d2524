"""Assembling: from the chunks of an image, a database file again, or the reason why it is none.

Digests say that each chunk is what was promised; not that together they are a database. All that could be wrong about
them is found here, before anything is replaced.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec

from greenline.database.sqlite.images import Header, from_bytes, passing
from greenline.database.sqlite.tables import FORMAT, Stands, stands, write_meta
from greenline.kernel.codec import Garbled

Read = Callable[[bytes], bytes | None]
"""A chunk by its digest, or None if it is not here."""
LOCK_AT = 0x40000000
"""SQLite never uses the page that has this byte."""


class Lacking(Exception):
    """These chunks are not here."""


def assemble(digests: tuple[bytes, ...], read: Read, target: Path) -> Header:
    """Write the file; raises `Lacking` or `Garbled`."""
    header, order = _beginning(digests, read)
    with target.open("wb", buffering=0) as file:
        file.truncate(header.pages * header.page_size)
        placed = 0
        for number in range(1 + header.listings, len(digests)):
            chunk = _chunk(digests, number, read)
            count, rest = divmod(len(chunk), header.page_size)
            if rest or placed + count > len(order):
                raise Garbled(f"chunk {number} is not of pages that were listed")
            _place(file.fileno(), chunk, order[placed : placed + count], header.page_size)
            placed += count
        if placed != len(order):
            raise Garbled(f"{len(order)} pages were listed, and {placed} came")
        _list_free_pages(file.fileno(), header, order)
    return header


def _beginning(digests: tuple[bytes, ...], read: Read) -> tuple[Header, array[int]]:
    if not digests:
        raise Garbled("a snapshot without chunks")
    try:
        header = _HEADERS.decode(_chunk(digests, 0, read))
    except msgspec.DecodeError as error:
        raise Garbled(f"these are no chunks: {error}") from None
    if not 0 <= header.listings < len(digests):
        raise Garbled(f"{header.listings} chunks should list pages, and there are {len(digests)}")
    listing = b"".join(_chunk(digests, 1 + number, read) for number in range(header.listings))
    if len(listing) % 4:
        raise Garbled("what lists the pages is no list")
    order = from_bytes(listing)
    is_sound = 512 <= header.page_size <= 65536 and order and min(order) == 1 and max(order) <= header.pages
    if not is_sound or len(set(order)) != len(order):
        raise Garbled("what lists the pages lists none, or one twice, or one that there is not")
    return header, order


def _chunk(digests: tuple[bytes, ...], number: int, read: Read) -> bytes:
    chunk = read(digests[number])
    if chunk is None:
        raise Lacking(f"chunk {number} of {len(digests)} is lacking")
    return chunk


def _place(file: int, chunk: bytes, order: array[int], page_size: int) -> None:
    for place, number in enumerate(order):
        os.pwrite(file, chunk[place * page_size : (place + 1) * page_size], (number - 1) * page_size)


def _list_free_pages(file: int, header: Header, order: array[int]) -> None:
    """They were not sent; SQLite finds them through a list of its own."""
    used, size = bytearray(header.pages + 1), header.page_size
    for number in order:
        used[number] = 1
    free = [n for n in range(1, header.pages + 1) if not used[n] and n != LOCK_AT // size + 1]
    first, each = 0, size // 4 - 8
    for begin in range(0, len(free), each + 1):
        listing, *leaves = free[begin : begin + each + 1]
        os.pwrite(file, struct.pack(f">II{len(leaves)}I", first, len(leaves), *leaves), (listing - 1) * size)
        first = listing
    os.pwrite(file, struct.pack(">II", first, len(free)), 32)


def checked(path: Path, position: int, basis: bytes) -> Stands:
    """Is it a database, and of this position? Then it has this basis. Raises `Garbled`."""
    try:
        connection = passing(path)
        try:
            found = stands(connection)
            if found.position != position:
                raise Garbled(f"these chunks are of position {found.position}, not of {position}")
            ((form,),) = connection.execute("SELECT value FROM greenline_meta WHERE key = 'format'").fetchall()
            if form != FORMAT:
                raise Garbled(f"these chunks have the format {form}, and we know {FORMAT}")
            ((said,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
            if said != "ok":
                raise Garbled(f"these chunks are a damaged database: {said}")
            write_meta(connection, key="basis", value=basis)
            return stands(connection)
        finally:
            connection.close()
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, KeyError) as error:
        raise Garbled(f"these chunks are no database: {error}") from None


_HEADERS = msgspec.msgpack.Decoder(Header)
