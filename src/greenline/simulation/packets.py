"""Packets in words: what a frame says, for conversations and for runs that must be told packet by packet."""

from __future__ import annotations

import msgspec

from greenline.kernel.codec import unseal_one
from greenline.kernel.evidence import PACKET
from greenline.kernel.identities import ProcId
from greenline.simulation.world import World


def opened(world: World, sender: ProcId, frame: bytes) -> msgspec.Struct:
    """The message that a process sends, as its receivers will decode it."""
    router = world[sender].router
    assert router is not None, "who sends is up"
    sealed = unseal_one(frame)
    layer = next(each for each in router.layers if each.channel == sealed.channel)
    message = layer.wire.decode(sealed)
    assert isinstance(message, msgspec.Struct), "a message is a struct"
    return message


def describe(message: msgspec.Struct) -> str:
    """A message with all its fields."""
    fields = " ".join(f"{name}={_value(getattr(message, name))}" for name in message.__struct_fields__)
    return f"{type(message).__name__} {fields}"


def record_packets(world: World) -> None:
    """Put every packet into the trace: for a run that is looked at closely."""

    def note(sender: ProcId, to: tuple[ProcId, ...], frame: bytes) -> None:
        world.note(PACKET, f"{sender} -> {' '.join(to)}  {describe(opened(world, sender, frame))}")

    world.watch_packets = note


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f'"{value.decode(errors="backslashreplace")}"'
    return str(value).replace(" ", "")
