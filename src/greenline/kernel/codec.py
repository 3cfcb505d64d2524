"""One frame for the wire and for the disk: a short header, a checksum, and a typed body.

    magic 1 | version 1 | channel 1 | length 4 | header's check 2 | body's crc32c 4 | body

A datagram is one frame; a log is frames one after the other. The channel says whose body it is (a core's, or
the kernel's own). The header has a check of its own, so that a length can be believed before its body is
read: only then can a record torn by a crash be told from one that was damaged later.

Whatever is wrong with the bytes ends in a `CodecError` that says what, never in another exception: bytes come
from strangers and from disks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from crc32c import crc32c

MAGIC = 0x67
VERSION = 1
_PREFIX = struct.Struct(">BBBI")
_CHECKS = struct.Struct(">HI")
_HEADER = struct.Struct(">BBBIHI")
HEADER_SIZE = _HEADER.size
LARGEST_BODY = 1 << 30
KERNEL_CHANNEL = 0

T = TypeVar("T")


class CodecError(Exception):
    """These bytes are not what they should be. Caught at the edge: dropped and counted, or reported.

    CodecError
    ├── Truncated        they end too early
    ├── Garbled          the checksum or the types do not fit
    └── UnknownVersion   another version of Greenline wrote them
    """


class Truncated(CodecError):
    pass


class Garbled(CodecError):
    pass


class UnknownVersion(CodecError):
    pass


class Frame(NamedTuple):
    channel: int
    body: memoryview | bytes
    end: int
    """Where the next frame begins."""


def seal(channel: int, body: bytes) -> bytes:
    """The frame around a body."""
    if len(body) > LARGEST_BODY:
        raise ValueError(f"a body of {len(body)} bytes does not fit a frame of at most {LARGEST_BODY}; cut it in parts")
    prefix = _PREFIX.pack(MAGIC, VERSION, channel, len(body))
    return b"".join((prefix, _CHECKS.pack(crc32c(prefix) & 0xFFFF, crc32c(body)), body))


def unseal(data: bytes | memoryview, at: int = 0) -> Frame:
    """The frame that begins at `at`, its checksum verified, its body not yet opened."""
    here = len(data) - at
    if here < HEADER_SIZE:
        raise Truncated(f"{here} bytes where a header of {HEADER_SIZE} should be")
    magic, version, channel, length, header_check, checksum = _HEADER.unpack_from(data, at)
    if magic != MAGIC:
        raise Garbled(f"begins with byte {magic:#04x}, so it is no frame of Greenline")
    if crc32c(data[at : at + _PREFIX.size]) & 0xFFFF != header_check:
        raise Garbled("the header's checksum does not fit")
    if version != VERSION:
        raise UnknownVersion(f"frame version {version}, but this Greenline reads version {VERSION}")
    body_at = at + HEADER_SIZE
    end = body_at + length
    if end > len(data):
        raise Truncated(f"{len(data) - body_at} bytes of a body of {length}")
    body = memoryview(data)[body_at:end]
    if crc32c(body) != checksum:
        raise Garbled(f"the checksum of a body of {length} bytes does not fit")
    return Frame(channel, body, end)


def unseal_one(data: bytes) -> Frame:
    """The one frame that a datagram is: its end is known, so the header needs no check of its own.

    `unseal` says what is wrong.
    """
    if len(data) >= HEADER_SIZE:
        magic, version, channel, length, _, checksum = _HEADER.unpack_from(data)
        body = data[HEADER_SIZE:]
        if magic == MAGIC and version == VERSION and length == len(body) and crc32c(body) == checksum:
            return Frame(channel, body, len(data))
    frame = unseal(data)
    raise Garbled(f"{len(data) - frame.end} bytes after the frame")


class Codec(Generic[T]):
    """Encodes and decodes the bodies of one channel: a type, or a union of tagged types."""

    def __init__(self, channel: int, shape: Any) -> None:
        if not 0 <= channel <= 255:
            raise ValueError(f"channel {channel} does not fit one byte")
        self.channel = channel
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(shape)

    def encode(self, value: T) -> bytes:
        return seal(self.channel, self._encoder.encode(value))

    def decode(self, frame: Frame) -> T:
        if frame.channel != self.channel:
            raise Garbled(f"a body of channel {frame.channel} where {self.channel} was expected")
        try:
            value: T = self._decoder.decode(frame.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
            raise Garbled(f"the body of channel {self.channel} does not fit its types: {error}") from None
        return value


class Log:
    """The frames of a log, up to where a crash may have torn it.

    A tear can only be at the end: the last record was being written. A broken frame with whole ones after it
    is damage of another kind, and must not be passed over in silence: what was acknowledged is behind it.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.torn: CodecError | None = None
        """What is wrong with the last frame, once the log has been read."""
        self.end = 0
        """Where the whole frames end: what comes after is to be cut off."""

    def __iter__(self) -> Iterator[Frame]:
        self.end = 0
        while self.end < len(self._data):
            try:
                frame = unseal(self._data, self.end)
            except UnknownVersion:
                raise
            except Truncated as error:
                # The header is whole, so its length is true: the body was cut off, or the header itself was.
                self.torn = error
                return
            except Garbled as error:
                if self._whole_frame_follows(self._after_the_broken_one()):
                    raise Garbled(f"damaged at byte {self.end}, with whole records after it: {error}") from None
                self.torn = error
                return
            yield frame
            self.end = frame.end

    def _after_the_broken_one(self) -> int:
        """Where to look for whole frames: behind the broken body if its header can be believed.

        A torn record may hold whole frames inside; in a preallocated segment it also has its full length.
        """
        header = self._data[self.end : self.end + HEADER_SIZE]
        magic, _, _, length, header_check, _ = _HEADER.unpack(header)
        is_true = magic == MAGIC and crc32c(header[: _PREFIX.size]) & 0xFFFF == header_check
        return self.end + (HEADER_SIZE + length if is_true else 1)

    def _whole_frame_follows(self, behind: int) -> bool:
        data = bytes(self._data[behind:])
        at = data.find(MAGIC)
        while at >= 0:
            try:
                unseal(data, at)
            except CodecError:
                at = data.find(MAGIC, at + 1)
            else:
                return True
        return False
