"""Pages: a database that is laid over a pinned one, page by page. What is written to it is private and passing.

`View` reads the pages of a committed state from the main file and the log, while a transaction pins them. `Pages` puts
a private file in front of it: a page that was written is read from there, all others from the view. `Layers` is the VFS
through which SQLite opens such a database by name. To SQLite it looks like a database with a rollback journal
that nobody shares: two bytes of its header are changed for that, as a log of its own is not what it has.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import apsw

from greenline.database.sqlite.determinism import Clock, Moment
from greenline.database.sqlite.wal import Extent, Wal

_VERSIONS = slice(18, 20)
"""Where the header says how it is written and read: 2 is with a log, 1 without."""
_WITHOUT_LOG = b"\x01\x01"


class View:
    """A committed state, as long as the transaction that pins it is open."""

    def __init__(self, wal: Wal, extent: Extent, count: int) -> None:
        self._wal = wal
        self._extent = extent
        self._newest: Mapping[int, int] | None = None
        """Found out when it is needed: in the thread that reads, not in the one that pins."""
        self.count = count
        self.page_size = extent.page_size

    def read(self, page: int) -> bytes:
        if self._newest is None:
            self._newest = self._wal.newest(self._extent)
        at = self._newest.get(page)
        if at is not None:
            return os.pread(self._wal.log, self.page_size, at)
        return os.pread(self._wal.main, self.page_size, (page - 1) * self.page_size)


class Pages:
    """A file of pages to SQLite (the methods of a VFS file): the view, with what was written in front of it.

    The private pages lie in a file without a name, each at its place, so that memory does not grow with them.
    """

    def __init__(self, view: View, directory: Path) -> None:
        self._view = view
        self._size = view.page_size
        self._private = tempfile.TemporaryFile(dir=directory, prefix="overlay-", buffering=0)  # noqa: SIM115 - see close
        self._written: set[int] = set()
        self._bytes = view.count * view.page_size
        self._shown = view.count
        """So many pages of the view: what was cut off does not come back."""

    @property
    def written_bytes(self) -> int:
        return len(self._written) * self._size

    def close(self) -> None:
        self._private.close()

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if offset >= self._bytes:
            return b""
        page, begin = divmod(offset, self._size)
        data = self._page(page + 1)
        return data if amount == self._size else data[begin : begin + amount]

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        assert offset % self._size == 0, "SQLite writes pages at their places"
        assert len(data) == self._size, "SQLite writes whole pages"
        os.pwrite(self._private.fileno(), data, offset)
        self._written.add(offset // self._size + 1)
        self._bytes = max(self._bytes, offset + self._size)

    def _page(self, page: int) -> bytes:
        if page in self._written:
            return os.pread(self._private.fileno(), self._size, (page - 1) * self._size)
        if page > self._shown:
            return bytes(self._size)
        data = self._view.read(page)
        if page == 1:
            return data[: _VERSIONS.start] + _WITHOUT_LOG + data[_VERSIONS.stop :]
        return data

    def xTruncate(self, size: int) -> None:  # noqa: N802
        kept = size // self._size
        self._written = {page for page in self._written if page <= kept}
        self._shown = min(self._shown, kept)
        self._bytes = size

    def xFileSize(self) -> int:  # noqa: N802
        return self._bytes

    # Nobody shares it, and it need not last.

    def xClose(self) -> None:  # noqa: N802
        pass

    def xSync(self, flags: int) -> None:  # noqa: N802
        pass

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, _: int, __: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return self._size

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0


class Layers(Clock):
    """Databases that are `Pages`, by name; everything else, temporary files above all, is as below."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(moment)
        self._pages: dict[str, Pages] = {}

    def add(self, name: str, pages: Pages) -> None:
        self._pages[name] = pages

    def remove(self, name: str) -> None:
        del self._pages[name]

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name if name in self._pages else super().xFullPathname(name)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            flags[1] = flags[0]
            return self._pages[_plain(name)]  # type: ignore[return-value]  # it has the methods, and needs no more
        return super().xOpen(name, flags)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        """None of them has a journal or a log of before."""
        return False if pathname.rpartition("-")[0] in self._pages else super().xAccess(pathname, flags)


def _plain(name: str | apsw.URIFilename | None) -> str:
    assert name is not None, "a main database has a name"
    return name if isinstance(name, str) else name.filename()
