"""The clerk: a process of its own that writes segments, while whoever follows applies the next bundles.

Opening actions and packing rows takes as long as applying them: in one process each would wait for the other. The two
have a socket between them. A segment is handed over as an open file without a name, so that nobody waits until all of
it has gone through a pipe; for each the clerk answers once it is on the disk, in a frame: eight bytes that say how long
the rest is. It ends with the socket. The archive's lock is open in it as well: as long as it writes, also for somebody
who was killed, nobody else begins to.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO

import msgspec

from greenline.pipeline import collecting, tables_inserting
from greenline.pipeline.archive import Manifest
from greenline.pipeline.segments import Prepare, Segment, write

UNDER_WAY = 2
"""Segments that are written or wait for it; whoever has more is to wait."""
_LENGTH = struct.Struct(">Q")
_PREPARES = "prepares"
_ONE = b"1"
"""Goes along with an open file, which cannot travel alone."""


class NotWritten(Exception):
    """Something of an archive could not be written: why. Nothing after it is."""

    @classmethod
    def of(cls, error: OSError, path: Path) -> NotWritten:
        return cls(f"the archive could not be written: {_reason(error, path)}")


class Written(msgspec.Struct, array_like=True, tag=True, gc=False):
    manifest: Manifest


class Failed(msgspec.Struct, array_like=True, tag=True, gc=False):
    reason: str


class Clerk:
    """Whoever follows has one."""

    def __init__(self, path: Path, lock: int, *, prepares: bool = False) -> None:
        """`prepares`: somebody makes tables of it (`tables_inserting`)."""
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(path), *([_PREPARES] if prepares else [])],
                stdin=theirs.fileno(),
                pass_fds=(lock,),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # a Ctrl-C is for who follows, who then ends this
            )
        self._answers = self._socket.makefile("rb")
        self._buffer = bytearray()
        """Kept, since the system takes its time to give out so much memory."""
        self._under_way = 0
        self._over: Failed | None = None
        """Why nothing more is written."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, segment: Segment) -> None:
        """Returns while it is written, unless too many are. Raises `NotWritten`."""
        while self._under_way >= UNDER_WAY:
            self._wait()
        try:
            with TemporaryFile() as file:
                _ENCODER.encode_into(segment, self._buffer)
                file.write(self._buffer)
                file.flush()
                self._hand_over(file.fileno())
        except OSError as error:
            raise NotWritten.of(error, Path(gettempdir())) from None
        self._under_way += 1

    def finish(self) -> None:
        """All that was given to it is on the disk when this returns. Raises `NotWritten`."""
        while self._under_way:
            self._wait()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait()

    def _hand_over(self, file: int) -> None:
        try:
            socket.send_fds(self._socket, [_ONE], [file])
        except OSError:
            self._wait()  # it says why it is gone

    def _wait(self) -> None:
        """For the next answer; whoever has failed gives no other."""
        answer = self._over or self._answered()
        if isinstance(answer, Failed):
            self._over = answer
            raise NotWritten(f"a segment of the archive could not be written: {answer.reason}")
        self._under_way -= 1

    def _answered(self) -> Written | Failed:
        try:
            data = _received(self._answers)
        except ConnectionError:
            data = None
        return Failed("the process that writes it was killed") if data is None else _ANSWERS.decode(data)


def _work(path: Path, asked: socket.socket, prepare: Prepare | None) -> None:
    answers = asked.makefile("wb")
    for file in _handed(asked):
        try:
            with collecting.paused():
                answer: Written | Failed = Written(write(path, _segment(file), prepare))
        except OSError as error:
            answer = Failed(_reason(error, path))
        except Exception as error:  # noqa: BLE001  (raised by whoever follows, who else would only see us gone)
            answer = Failed(f"{type(error).__name__}: {error}")
        _send(answers, _ENCODER.encode(answer))
        if isinstance(answer, Failed):
            break
    for file in _handed(asked):  # not to be written; who leaves them unread takes back what it has answered
        os.close(file)


def _handed(asked: socket.socket) -> Iterator[int]:
    """Open files, until whoever hands them over has gone."""
    while files := socket.recv_fds(asked, len(_ONE), 1)[1]:
        yield from files


def _segment(file: int) -> Segment:
    try:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
            return _SEGMENTS.decode(data)
    finally:
        os.close(file)


def _reason(error: OSError, path: Path) -> str:
    return f"{error.filename or path}: {error.strerror or error}"


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes | None:
    """None: there is no more, or not all of it."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


_ENCODER = msgspec.msgpack.Encoder()
_SEGMENTS = msgspec.msgpack.Decoder(Segment)
_ANSWERS: msgspec.msgpack.Decoder[Written | Failed] = msgspec.msgpack.Decoder(Written | Failed)

if __name__ == "__main__":
    with socket.socket(fileno=sys.stdin.fileno()) as told:
        _work(Path(sys.argv[1]), told, tables_inserting.prepare if _PREPARES in sys.argv else None)
