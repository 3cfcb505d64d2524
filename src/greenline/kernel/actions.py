"""Actions: what single clients ask for, packed at the edge and opened at the database. In between they are bytes."""

from __future__ import annotations

import msgspec

from greenline.kernel.codec import Garbled


class Action(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One request of one client: its identity, and what the database is asked to do."""

    session: str
    number: int
    body: bytes

    def __str__(self) -> str:
        return f"{self.session}/{self.number}"


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Action, ...])


def pack(actions: tuple[Action, ...]) -> bytes:
    return _ENCODER.encode(actions)


def unpack(packed: bytes) -> tuple[Action, ...]:
    try:
        return _DECODER.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Garbled(f"these are no actions: {error}") from None
