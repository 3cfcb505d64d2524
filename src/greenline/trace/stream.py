"""The stream: a trace as it is written, block by block, so that a kill loses at most the last unflushed rows.

A file of frames (`kernel.codec`): a head that names the schema's version, then blocks of rows of one run. What
has been flushed is the operating system's, so it survives kill -9; a block that was cut off by it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from greenline.kernel import evidence
from greenline.kernel.codec import Codec, CodecError, Frame, Log, UnknownVersion
from greenline.kernel.evidence import Row
from greenline.trace.schema import VERSION

SUFFIX = ".trace"
_HEAD_CHANNEL = 1
_BLOCK_CHANNEL = 2


class NotATrace(Exception):
    """The file cannot be read as a trace; the message says why."""


class Head(msgspec.Struct, frozen=True, array_like=True):
    format: str
    schema_version: int


class Block(msgspec.Struct, frozen=True, array_like=True):
    run: str
    rows: list[Row]


_HEADS: Codec[Head] = Codec(_HEAD_CHANNEL, Head)
_BLOCKS: Codec[Block] = Codec(_BLOCK_CHANNEL, Block)
_FORMAT = "greenline trace"


class TraceWriter:
    """Appends rows to a stream. `add` costs an append to a list; a full block is packed and written at once.

    A writer begins a file and never reopens one: each life of a node has a file of its own.
    """

    def __init__(self, path: Path, run: str, block_rows: int = 1000) -> None:
        self.path = path
        self.run = run
        self._block_rows = block_rows
        self._pending: list[Row] = []
        self._end = 0
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._write(_HEADS.encode(Head(_FORMAT, VERSION)))

    def add(self, row: Row) -> None:
        self._pending.append(row)
        if len(self._pending) >= self._block_rows:
            self.flush()

    def extend(self, rows: list[Row]) -> None:
        for row in rows:
            self.add(row)

    def change_run(self, run: str) -> None:
        """Rows from here on are of another run."""
        self.flush()
        self.run = run

    def flush(self) -> None:
        """Hand the pending rows to the operating system: from here on they survive kill -9."""
        if self._pending:
            self._write(_BLOCKS.encode(Block(self.run, self._pending)))
            self._pending = []

    def close(self) -> None:
        self.flush()
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, frame: bytes) -> None:
        """All of it, or nothing: an unbuffered write may take only a part, and half a block would spoil the rest."""
        rest = memoryview(frame)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise
        self._end += len(frame)


class TraceReader:
    """The blocks of a stream, in the order in which they were written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_off: CodecError | None = None
        """What is wrong with the last block, if its writer was killed in the middle of it; known after reading."""
        self.end = 0
        """Where the whole blocks end; known after reading."""

    def __iter__(self) -> Iterator[Block]:
        data = self.path.read_bytes()
        if not data:
            return  # killed before its head was written: no rows, and nothing wrong
        log = Log(data)
        frames = iter(log)
        try:
            head = next(frames, None)
            self._check(head, log)
            for frame in frames:
                yield _BLOCKS.decode(frame)
        except UnknownVersion as error:
            raise NotATrace(f"{self.path} was written by another version: {error}") from None
        except CodecError as error:
            raise NotATrace(f"{self.path} is damaged: {error}") from None
        self.cut_off = log.torn
        self.end = log.end

    def _check(self, head: Frame | None, log: Log) -> None:
        if head is None:
            raise NotATrace(f"{self.path} is not a trace: {log.torn}")
        if head.channel != _HEAD_CHANNEL:
            raise NotATrace(f"{self.path} is not a trace: it has no head")
        found = _HEADS.decode(head)
        if found.format != _FORMAT:
            raise NotATrace(f"{self.path} is not a trace but {found.format!r}")
        if found.schema_version != VERSION:
            raise NotATrace(
                f"{self.path} has schema version {found.schema_version}; this Greenline reads version {VERSION}. "
                "Read it with the Greenline that wrote it."
            )


def note_crash(path: Path) -> None:
    """Whoever begins the next life notices that this one has ended, and writes so, unless somebody has."""
    reader = TraceReader(path)
    last: Row | None = None
    conf, run = None, ""
    for block in reader:
        run = block.run
        for last in block.rows:
            if last.kind in (evidence.REGULAR, evidence.TRANSITIONAL):
                conf = last.conf
    if last is None or last.kind in (evidence.HALT, evidence.CRASH):
        return
    row = Row(last.process, last.incarnation, last.local_index + 1, last.time, evidence.CRASH, conf=conf)
    with path.open("r+b") as file:
        file.truncate(reader.end)  # half a block may follow
        file.seek(reader.end)
        file.write(_BLOCKS.encode(Block(run, [row])))
