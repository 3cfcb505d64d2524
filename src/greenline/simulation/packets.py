"""Packets in words: what a frame says, for conversations and for runs that must be told packet by packet."""

from __future__ import annotations

import msgspec

from greenline.kernel.codec import unseal_one
from greenline.kernel.evidence import PACKET
from greenline.kernel.identities import ConfId, ProcId
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
        text = value.decode(errors="backslashreplace")
        return '"' + "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text) + '"'
    if isinstance(value, tuple):
        return "(" + ",".join(map(_value, value)) + ")"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, ConfId):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return "[" + " ".join(_value(getattr(value, name)) for name in value.__struct_fields__) + "]"
    return str(value).replace(" ", "")
