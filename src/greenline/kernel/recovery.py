"""Recovery: what the log of a node says when a life begins.

The kernel writes two records of its own among those of the cores: a life began, and a core's records are renewed by
the frames that follow. Nothing comes between a renewal and its frames. So one that is not whole is the last thing in
its log: a crash came first, and it never was. What there is of it must be cut off, or the next record would be taken
for one of its frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from greenline.kernel.codec import KERNEL_CHANNEL, Codec, CodecError, Log


class Life(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A life began, or is said again, so that what stands before can be discarded."""

    incarnation: int


class Renewal(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """So many frames of this channel follow, and replace all that it had before."""

    channel: int
    count: int


KERNEL: Codec[Life | Renewal] = Codec(KERNEL_CHANNEL, Life | Renewal)


@dataclass(slots=True)
class Past:
    """What one core has in the log."""

    records: list[Any] = field(default_factory=list)
    oldest: int | None = None
    """Where the first of them begins, or their renewal."""


@dataclass(slots=True)
class Recovered:
    incarnation: int
    """Of the last life; 0 if there was none."""
    pasts: dict[int, Past]
    """By channel."""
    end: int
    """Where the log goes on."""
    is_torn: bool
    """There is something behind the end: to be cut off before anything is written."""


def recover(log: bytes, codecs: Mapping[int, Codec[Any]]) -> Recovered:
    """Read a log from its beginning, or from any place before which all was discarded."""
    pasts = {channel: Past() for channel in codecs}
    incarnation = 0
    void_from: int | None = None
    frames = Log(log)
    reading = iter(frames)
    for frame in reading:
        at = frames.end  # of those before: this frame is counted when the next is asked for
        if frame.channel != KERNEL_CHANNEL:
            past = pasts[_known(frame.channel, codecs)]
            past.records.append(codecs[frame.channel].decode(frame))
            past.oldest = at if past.oldest is None else past.oldest
            continue
        record = KERNEL.decode(frame)
        if isinstance(record, Life):
            incarnation = record.incarnation
            continue
        codec = codecs[_known(record.channel, codecs)]
        renewed = [codec.decode(each) for each in islice(reading, record.count)]
        if len(renewed) < record.count:
            void_from = at
        else:
            pasts[record.channel] = Past(renewed, at if renewed else None)
    if not incarnation and any(past.records for past in pasts.values()):
        raise CodecError("the log has records, but no life that wrote them: its beginning is lost")
    end = frames.end if void_from is None else void_from
    return Recovered(incarnation, pasts, end, frames.torn is not None or void_from is not None)


def _known(channel: int, codecs: Mapping[int, Codec[Any]]) -> int:
    if channel not in codecs:
        raise CodecError(f"the log has records of channel {channel}, which no core of this node reads")
    return channel
