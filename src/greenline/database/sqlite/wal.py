"""The write-ahead log as SQLite's file format documents it: which frame holds the newest version of which page.

A reader that has begun its transaction pins the log's frames up to where it begins, and the pages of the main file that
are not in them: nobody overwrites either until it ends. So whoever keeps such a transaction open may read the pages
from the files by itself. The log's index (`-shm`) says how many frames count, and how many of them the main file has:
if it has all, the log may be begun anew under a reader, and only the main file is to be read.

Files that SQLite locks are opened once and kept: to close one would let go of every lock that this process has on it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

WAL_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_INDEX = struct.Struct("=12xB3xI12x8s")
"""Of the index's header: is it valid, how many frames count, salts."""
_PAGE_SIZE = struct.Struct(">16xH")
"""Of the main file's header."""
_BACKFILLED_AT = 96
_PAGE = struct.Struct(">I4x8s")
"""Of a frame's header: page, salts."""


class Extent(NamedTuple):
    """How far the log goes, and since when."""

    frames: int
    backfilled: int
    """So many of them the main file has as well."""
    salts: bytes
    """Of this beginning of the log."""
    page_size: int

    @property
    def bytes(self) -> int:
        return WAL_HEADER_BYTES + self.frames * (FRAME_HEADER_BYTES + self.page_size) if self.frames else 0


class Wal:
    """The files of a database that is open in WAL mode, beside the connections: only read, never locked.

    To be opened after a connection has read something, so that the log and its index exist, and to be closed after all
    connections are.
    """

    def __init__(self, path: Path) -> None:
        self.main = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._index = os.open(f"{path}-shm", os.O_RDONLY | os.O_CLOEXEC)
        (size,) = _PAGE_SIZE.unpack(os.pread(self.main, _PAGE_SIZE.size, 0))
        self._page_size = 65536 if size == 1 else size
        self._is_closed = False
        self._salts = b""
        self._known = 0
        """Frames that were looked at since the log began with these salts."""
        self._frames: dict[int, int] = {}

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            for file in (self.main, self.log, self._index):
                os.close(file)

    def extent(self) -> Extent:
        """As of now: exact only while nobody writes."""
        is_valid, frames, salts = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        (backfilled,) = struct.unpack("=I", os.pread(self._index, 4, _BACKFILLED_AT))
        assert is_valid, "the log's index is read before any connection has read it"
        return Extent(frames, backfilled, salts, self._page_size)

    def newest(self, extent: Extent) -> Mapping[int, int]:
        """Where in the log the newest version of each page begins that is not to be read from the main file.

        What was found before is used again, if the log has only grown since. The frames must be pinned.
        """
        if extent.backfilled >= extent.frames:
            return {}
        if extent.salts != self._salts or extent.frames < self._known:
            self._salts, self._known, self._frames = extent.salts, 0, {}
        stride = FRAME_HEADER_BYTES + extent.page_size
        found: dict[int, int] = {}
        for frame in range(self._known, extent.frames):
            at = WAL_HEADER_BYTES + frame * stride
            page, salts = _PAGE.unpack(os.pread(self.log, _PAGE.size, at))
            assert salts == extent.salts, f"frame {frame} of {extent.frames} is of another log"
            found[page] = at + FRAME_HEADER_BYTES
        # A map that was handed out stays what it was: it belongs to an older view.
        self._frames = {**self._frames, **found}
        self._known = extent.frames
        return self._frames
