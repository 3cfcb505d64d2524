"""The log: what must survive, in a preallocated file of zeros, forced by a thread of its own.

A forced write into space that exists and is zero costs half of one that makes a file grow. Frames stand one after the
other; where only zeros follow, the log ends. What a crash tore is found and cut off by the router, who reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from greenline.kernel.codec import CodecError, unseal

SEGMENT = 4 << 20
"""By how many bytes the file is extended."""


class DiskFailed(Exception):
    """A write or a forced write has failed. Nothing that depends on it may be acknowledged, ever."""


class Log:
    """One node's log file. Writes are gathered, and one forced write takes them all to disk."""

    def __init__(self, path: Path, delay: Callable[[], None] | None = None) -> None:
        """`delay` is called before each forced write: for benchmarks with slower disks than this one."""
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._delay = delay
        self._pending: list[bytes] = []
        self._at = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._size = os.fstat(self._file).st_size

    def contents(self) -> bytes:
        """What is in it, without the zeros at its end."""
        data = os.pread(self._file, self._size, 0)
        at = 0
        while at < len(data):
            try:
                at = unseal(data, at).end
            except CodecError:
                break
        if not any(data[at:]):
            data = data[:at]  # otherwise something is torn or damaged, which is the router's to judge
        self._at = len(data)
        return data

    def cut(self, at: int) -> None:
        """Put zeros where a torn record stands."""
        os.pwrite(self._file, b"\x00" * (self._size - at), at)
        self._at = at

    def write(self, frame: bytes) -> None:
        self._pending.append(frame)

    def force(self, done: Callable[[DiskFailed | None], None]) -> None:
        """Take all that was written so far to disk, in the thread; `done` is called there."""
        pending, self._pending = self._pending, []
        data = b"".join(pending)
        at, self._at = self._at, self._at + len(data)
        self._thread.submit(self._force, data, at, done)

    def _force(self, data: bytes, at: int, done: Callable[[DiskFailed | None], None]) -> None:
        try:
            if at + len(data) > self._size:
                self._extend(at + len(data))
            os.pwrite(self._file, data, at)
            if self._delay is not None:
                self._delay()
            os.fdatasync(self._file)
        except OSError as error:
            done(DiskFailed(f"{self.path}: {error.strerror}"))
        else:
            done(None)

    def _extend(self, least: int) -> None:
        size = -(-least // SEGMENT) * SEGMENT
        os.pwrite(self._file, b"\x00" * (size - self._size), self._size)
        os.fsync(self._file)
        self._size = size

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        os.close(self._file)
