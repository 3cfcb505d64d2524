"""The clerk: a process of its own that writes segments, while whoever follows applies the next bundles.

Opening actions and packing rows takes as long as applying them: in one process each would wait for the other. It is
told segments on its standard input, and answers for each on its output once that is on the disk, both as frames: four
bytes that say how long the rest is. It ends with its input. The archive's lock is open in it as well: as long as it
writes, also for somebody who was killed, nobody else begins to.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec

from greenline.pipeline import collecting
from greenline.pipeline.archive import Manifest
from greenline.pipeline.segments import Segment, write

UNDER_WAY = 2
"""Segments that are written or wait for it; whoever has more is to wait."""
_LENGTH = struct.Struct(">Q")


class NotWritten(Exception):
    """A segment could not be written: why. Nothing after it is."""

    @classmethod
    def of(cls, error: OSError, path: Path) -> NotWritten:
        return cls(f"a segment of the archive could not be written: {_reason(error, path)}")


class Written(msgspec.Struct, array_like=True, tag=True, gc=False):
    manifest: Manifest


class Failed(msgspec.Struct, array_like=True, tag=True, gc=False):
    reason: str


class Clerk:
    """Whoever follows has one."""

    def __init__(self, path: Path, lock: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(lock,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C is for who follows, who then ends this
        )
        self._under_way = 0

    def write(self, segment: Segment) -> None:
        """Returns while it is written, unless too many are. Raises `NotWritten`."""
        while self._under_way >= UNDER_WAY:
            self._wait()
        assert self._process.stdin is not None, "it was given one"
        try:
            _send(self._process.stdin, _ENCODER.encode(segment))
        except OSError:
            self._wait()  # it says why it is gone
        self._under_way += 1

    def finish(self) -> None:
        """All that was given to it is on the disk when this returns. Raises `NotWritten`."""
        while self._under_way:
            self._wait()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _wait(self) -> None:
        assert self._process.stdout is not None, "it was given one"
        data = _received(self._process.stdout)
        answer = Failed("the process that writes it was killed") if data is None else _ANSWERS.decode(data)
        if isinstance(answer, Failed):
            raise NotWritten(f"a segment of the archive could not be written: {answer.reason}")
        self._under_way -= 1


def _work(path: Path, asked: IO[bytes], answers: IO[bytes]) -> None:
    while (data := _received(asked)) is not None:
        try:
            with collecting.paused():
                answer: Written | Failed = Written(write(path, _SEGMENTS.decode(data)))
        except OSError as error:
            answer = Failed(_reason(error, path))
        _send(answers, _ENCODER.encode(answer))
        if isinstance(answer, Failed):
            return


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
    _work(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
