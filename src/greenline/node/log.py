"""The log: what must survive, in preallocated segments of zeros, forced by a thread of its own.

A segment is a file of frames one after the other, and ends where only zeros follow; a frame is never split. A segment
is forced to its end before the next one is begun, so a crash can tear the last one only: what it tore is found and cut
off by the router, who reads it.

Space is taken from the file system without writing zeros into it: a short forced write costs the same, and a stream of
long ones is three times as fast as when every byte is written twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from greenline.kernel.codec import CodecError, unseal

SEGMENT_BYTES = 16 << 20
SUFFIX = ".segment"


class DiskFailed(Exception):
    """A write or a forced write has failed. Nothing that depends on it may be acknowledged, ever."""


class Log:
    """One node's log. Writes are gathered, and one forced write takes them all to disk."""

    def __init__(self, directory: Path, delay: float = 0.0, segment_bytes: int = SEGMENT_BYTES) -> None:
        """`delay` seconds are added to each forced write: for benchmarks with slower disks than this one."""
        self.directory = directory
        self._delay = delay
        self._segment_bytes = segment_bytes
        self._pending: list[bytes] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        directory.mkdir(parents=True, exist_ok=True)
        for unfinished in directory.glob("*.new"):
            unfinished.unlink()  # a crash came before it had its space
        self._numbers = sorted(int(path.stem) for path in directory.glob(f"*{SUFFIX}"))
        """Of the segments that there are; the last is the one that we write to."""
        if not self._numbers:
            self._make(1)
            self._numbers = [1]
        self._open()

    # Reading, before anything is written.

    def contents(self) -> bytes:
        """All frames of all segments, without the zeros at their ends."""
        found = [_frames(self._path(number).read_bytes()) for number in self._numbers]
        while len(found) > 1 and not found[-1]:
            # It was made, and a crash came before it was begun: what it tore is in the one before.
            found.pop()
            self._path(self._numbers.pop()).unlink()
        os.close(self._file)
        self._open()
        self._at = len(found[-1])
        self._before = sum(map(len, found[:-1]))
        return b"".join(found)

    def cut(self, at: int) -> None:
        """Put zeros where a torn record stands."""
        self._at = at - self._before
        os.pwrite(self._file, b"\x00" * (self._size - self._at), self._at)

    # Writing.

    def write(self, frame: bytes) -> None:
        self._pending.append(frame)

    def force(self, done: Callable[[DiskFailed | None], None]) -> None:
        """Take all that was written so far to disk, in the thread; `done` is called there."""
        pending, self._pending = self._pending, []
        self._thread.submit(self._force, pending, done)

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        os.close(self._file)

    # In the thread.

    def _force(self, frames: list[bytes], done: Callable[[DiskFailed | None], None]) -> None:
        try:
            self._append(frames)
            if self._delay:
                time.sleep(self._delay)
            os.fdatasync(self._file)
        except OSError as error:
            done(DiskFailed(f"{self._path(self._numbers[-1])}: {error.strerror}"))
        else:
            done(None)

    def _append(self, frames: list[bytes]) -> None:
        begin, room = 0, self._size - self._at
        for position, frame in enumerate(frames):
            room -= len(frame)
            if room < 0:
                self._write_here(frames[begin:position])
                self._begin_next(len(frame))
                begin, room = position, self._size - len(frame)
        self._write_here(frames[begin:])

    def _write_here(self, frames: list[bytes]) -> None:
        data = b"".join(frames)
        os.pwrite(self._file, data, self._at)
        self._at += len(data)

    def _begin_next(self, least: int) -> None:
        """Force this segment, and go on in the next."""
        os.fdatasync(self._file)
        following = self._numbers[-1] + 1
        self._make(following, least)
        os.close(self._file)
        self._numbers.append(following)
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path(self._numbers[-1]), os.O_RDWR | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        self._at = 0

    def _make(self, number: int, least: int = 0) -> None:
        """A segment that is there as a whole or not at all."""
        path = self._path(number)
        beside = path.with_suffix(".new")
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, max(least, self._segment_bytes))
            os.fsync(file)
        finally:
            os.close(file)
        beside.replace(path)
        _force_directory(self.directory)

    def _path(self, number: int) -> Path:
        return self.directory / f"{number:010}{SUFFIX}"


def _frames(data: bytes) -> bytes:
    """A segment without the zeros at its end. What is torn or damaged stays: that is the router's to judge."""
    at = 0
    while at < len(data):
        try:
            at = unseal(data, at).end
        except CodecError:
            break
    return data[:at] if not data[at:].strip(b"\x00") else data


def _force_directory(directory: Path) -> None:
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
