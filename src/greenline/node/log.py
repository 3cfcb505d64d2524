"""The log: what must survive, in preallocated segments, forced by a thread of its own.

A segment is a head and then batches, one after the other:

    magic 8 | the log's id 8 | the segment's number 8 | check 4            the head
    magic 4 | length 4 | number 8 | check 4 | frames                       a batch

What is forced together is one batch with one check: a crash may leave any part of it, as a disk writes pages in any
order, and then it never was. The checks are made with the log's id, so a batch of another log that happens to travel
inside this one is none. Only one batch is under way at a time, and a segment is forced to its end before the next one
is begun: a broken batch is the last, or the log is damaged, and is not read.

Segments of which nobody needs anything any more are deleted from the front, one by one, each gone for good before the
next: a log may begin with any segment, but none is missing after the first.

Space is taken from the file system without writing zeros into it: a short forced write costs the same, and a stream of
long ones is three times as fast as when every byte is written twice.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from crc32c import crc32c

SEGMENT_BYTES = 16 << 20
SUFFIX = ".segment"
_ID_BYTES = 8
_MAGIC = b"GREENLOG"
_HEAD = struct.Struct(">8s8sQ")
_CHECK = struct.Struct(">I")
_HEAD_BYTES = _HEAD.size + _CHECK.size
_BATCH_MAGIC = b"\xb5GLB"
_BATCH = struct.Struct(">4sIQ")
_BEFORE_FRAMES = _BATCH.size + _CHECK.size


class DiskFailed(Exception):
    """A write or a forced write has failed. Nothing that depends on it may be acknowledged, ever."""


class LogDamaged(Exception):
    """What was forced is not there any more: this disk has lost it, and the node must not go on without it."""


class Log:
    """One node's log. Writes are gathered, and one forced write takes them all to disk."""

    def __init__(self, directory: Path, delay: float = 0.0, segment_bytes: int = SEGMENT_BYTES) -> None:
        """`delay` seconds are added to each forced write: for benchmarks with slower disks than this one."""
        self.directory = directory
        self._delay = delay
        self._segment_bytes = segment_bytes
        self._pending: list[bytes] = []
        self._forces = 0
        """Forced writes that are asked for, and not under way."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._file: int | None = None
        self._id = b""
        self._segment = 0
        """The number of the last segment, the one that is written to."""
        self._size = self._at = 0
        self._number = 0
        """Of the last batch."""
        self._end = 0
        """Where the frames end, in bytes from where the contents began: a place, as a discard counts them."""
        self._full: deque[tuple[int, int]] = deque()
        """The segments before the last one, and where the frames of each end."""
        self._again = b""
        """After a forced write that failed, pages may count as written that are not: a new life writes them again."""
        directory.mkdir(parents=True, exist_ok=True)

    # Reading, before anything is written.

    def contents(self) -> bytes:
        """All frames, in order. From now on the log can be written to."""
        assert not self._id, "a log is read once, and then written"
        for unfinished in self.directory.glob("*.new"):
            unfinished.unlink()  # a crash came before it had its space
        found, data = self._read()
        if data:
            self._file, self._size = self._opened(self._segment)
            self._again = data[: self._at]
        else:
            self._id = secrets.token_bytes(_ID_BYTES)
        return b"".join(found)

    def _read(self) -> tuple[list[bytes], bytes]:
        """The frames of each batch, and all of the last segment."""
        found: list[bytes] = []
        data = b""
        for number in sorted(int(path.stem) for path in self.directory.glob(f"*{SUFFIX}")):
            if self._segment and number != self._segment + 1:
                raise LogDamaged(f"{self._path(self._segment + 1)} is missing")
            if self._segment:
                self._full.append((self._segment, self._end))
            data = self._path(number).read_bytes()
            self._segment = number
            self._read_segment(data, found)
        return found, data

    def _read_segment(self, data: bytes, found: list[bytes]) -> None:
        self._read_head(data)
        while (batch := self._batch(data, self._at)) is not None:
            number, end = batch
            if self._number and number != self._number + 1:
                raise LogDamaged(f"{self._path(self._segment)}: batch {number} follows batch {self._number}")
            found.append(data[self._at + _BEFORE_FRAMES : end])
            self._end += end - self._at - _BEFORE_FRAMES
            self._number, self._at = number, end
        # What a crash tore is the last: nothing was begun before it was there as a whole.
        at = data.find(_BATCH_MAGIC, self._at)
        while at >= 0:
            batch = self._batch(data, at)
            if batch is not None and batch[0] > self._number:
                raise LogDamaged(f"{self._path(self._segment)} cannot be read at byte {self._at}, and goes on after it")
            at = data.find(_BATCH_MAGIC, at + 1)

    def _read_head(self, data: bytes) -> None:
        path = self._path(self._segment)
        if len(data) < _HEAD_BYTES:
            raise LogDamaged(f"{path} has no head")
        magic, whose, number = _HEAD.unpack_from(data)
        if magic != _MAGIC or _CHECK.unpack_from(data, _HEAD.size)[0] != crc32c(data[: _HEAD.size]):
            raise LogDamaged(f"{path} does not begin like a segment")
        if number != self._segment or whose != (self._id or whose):
            raise LogDamaged(f"{path} is a segment of another log, or another segment of this one")
        self._id = whose
        self._at = _HEAD_BYTES

    def _batch(self, data: bytes, at: int) -> tuple[int, int] | None:
        """The number of the batch that begins here, and where it ends; None if there is none, or not all of it."""
        if at + _BEFORE_FRAMES > len(data):
            return None
        magic, length, number = _BATCH.unpack_from(data, at)
        end = at + _BEFORE_FRAMES + length
        if magic != _BATCH_MAGIC or end > len(data):
            return None
        check = self._check(data[at : at + _BATCH.size], memoryview(data)[at + _BEFORE_FRAMES : end])
        return (number, end) if _CHECK.unpack_from(data, at + _BATCH.size)[0] == check else None

    def _check(self, head: bytes, frames: bytes | memoryview) -> int:
        return crc32c(frames, crc32c(self._id + head))

    # Writing.

    def write(self, frame: bytes) -> None:
        assert self._id, "a log is read before it is written"
        self._pending.append(frame)

    def force(self, done: Callable[[DiskFailed | None], None]) -> None:
        """Take all that was written so far to disk, in the thread; `done` is called there."""
        pending, self._pending = self._pending, []
        self._forces += 1
        self._thread.submit(self._force, pending, done)

    def discard(self, before: int, failed: Callable[[DiskFailed], None]) -> None:
        """Delete the segments that end before this place, in the thread; `failed` is called there, if it is."""
        self._thread.submit(self._discard, before, failed)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    # In the thread.

    def _force(self, frames: list[bytes], done: Callable[[DiskFailed | None], None]) -> None:
        self._forces -= 1
        try:
            again, self._again = self._again, b""
            self._write(again, 0)
            self._append(b"".join(frames))
            if self._delay:
                time.sleep(self._delay)
            self._sync()
        except OSError as error:
            done(DiskFailed(f"{self._path(self._segment)}: {error.strerror}"))
        else:
            done(None)

    def _append(self, frames: bytes) -> None:
        needed = _BEFORE_FRAMES + len(frames)
        if self._at + needed > self._size:
            self._begin_next(needed)
        self._number += 1
        head = _BATCH.pack(_BATCH_MAGIC, len(frames), self._number)
        self._write(b"".join((head, _CHECK.pack(self._check(head, frames)), frames)), self._at)
        self._at += needed
        self._end += len(frames)

    def _write(self, data: bytes, at: int) -> None:
        """All of it: the kernel may take less than it is given."""
        rest = memoryview(data)
        while rest:
            assert self._file is not None, "there is a segment to write to"
            taken = os.pwrite(self._file, rest, at)
            rest, at = rest[taken:], at + taken

    def _sync(self) -> None:
        assert self._file is not None, "there is a segment to force"
        os.fdatasync(self._file)

    def _begin_next(self, needed: int) -> None:
        """Force this segment, and go on in the next."""
        if self._file is not None:
            self._sync()
        following = self._segment + 1
        self._make(following, max(self._segment_bytes, _HEAD_BYTES + needed))
        file, self._size = self._opened(following)
        before, self._file = self._file, file
        self._segment, self._at = following, _HEAD_BYTES
        if before is not None:
            self._full.append((following - 1, self._end))
            os.close(before)

    def _discard(self, before: int, failed: Callable[[DiskFailed], None]) -> None:
        """One by one, each behind the forced writes that came meanwhile: somebody waits for those."""
        try:
            while self._full and self._full[0][1] <= before:
                number, _ = self._full.popleft()
                self._path(number).unlink()
                force_directory(self.directory)  # or a crash could bring this one back, and not the next
                if self._forces:
                    with suppress(RuntimeError):  # it is being closed: the next life discards the rest
                        self.discard(before, failed)
                    return
        except OSError as error:
            failed(DiskFailed(f"{error.filename or self.directory}: {error.strerror}"))

    def _make(self, number: int, size: int) -> None:
        """A segment that is there as a whole or not at all."""
        path = self._path(number)
        beside = path.with_suffix(".new")
        head = _HEAD.pack(_MAGIC, self._id, number)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, size)
            os.write(file, head + _CHECK.pack(crc32c(head)))
            os.fsync(file)
        finally:
            os.close(file)
        beside.replace(path)
        force_directory(self.directory)

    def _opened(self, number: int) -> tuple[int, int]:
        """The file, and its size."""
        file = os.open(self._path(number), os.O_RDWR | os.O_CLOEXEC)
        return file, os.fstat(file).st_size

    def _path(self, number: int) -> Path:
        return self.directory / f"{number:010}{SUFFIX}"


def force_directory(directory: Path) -> None:
    """A new name in it survives from here on, and one that is gone stays so."""
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def frames_in(directory: Path) -> bytes:
    """All frames of a log that nobody writes to meanwhile: it is left as it is, also what a crash has torn.

    Raises `LogDamaged`.
    """
    if not directory.is_dir():
        raise LogDamaged(f"there is no log in {directory}")
    return b"".join(Log(directory)._read()[0])
