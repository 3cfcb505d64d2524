"""Rotation of the cluster's key, as a node takes part in it: accept the new key, seal with it, forget the old one.

Whoever rotates (`greenline rotate-key`) takes all members through one step before the next, so at each moment
everybody opens what anybody seals. A step is sealed under the receiver's current key, and names the receiver and the
state that it starts from: a step that was recorded fits no later state, because `changes` only grows.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from greenline.kernel.identities import ProcId
from greenline.node.envelope import Envelope, NotAuthentic
from greenline.node.keyfile import HIGHEST_NUMBER, Kept
from greenline.node.sealing import KEY_BYTES, Keyring

PURPOSE = "greenline rotation"


class Step(StrEnum):
    ACCEPT = "accept"
    USE = "use"
    FORGET = "forget"


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one member."""

    to: ProcId
    current: int
    changes: int
    step: Step
    number: int
    key: bytes


class RotationRefused(Exception):
    """The step does not fit: why, and what to do."""


def sealed(rotation: Rotation, current_key: bytes) -> bytes:
    return Envelope(current_key, PURPOSE).seal(msgspec.msgpack.encode(rotation))


def opened(body: bytes, kept: Kept, me: ProcId) -> Rotation:
    """The step in it, if it is for us and for now."""
    ring = kept.keyring
    try:
        rotation = msgspec.msgpack.decode(Envelope(ring.keys[ring.current], PURPOSE).open(body), type=Rotation)
    except (NotAuthentic, msgspec.DecodeError):
        raise RotationRefused(f"this was not sealed with {me}'s current key {ring.current}; rotate again") from None
    if rotation.to != me:
        raise RotationRefused(f"this step is for {rotation.to}, and I am {me}; rotate again")
    if (rotation.current, rotation.changes) != (ring.current, kept.changes):
        raise RotationRefused(f"this step is not for the keys that {me} has now; rotate again")
    return rotation


def taken(rotation: Rotation, kept: Kept) -> Kept:
    """The keys after the step; the same if it was taken before."""
    ring, number = kept.keyring, rotation.number
    match rotation.step:
        case Step.ACCEPT:
            if not 1 <= number <= HIGHEST_NUMBER or len(rotation.key) != KEY_BYTES:
                raise RotationRefused(f"key {number} is no key; rotate again")
            if ring.keys.get(number, rotation.key) != rotation.key:
                raise RotationRefused(
                    f"there is another key {number} already, of a rotation begun elsewhere; finish that one first"
                )
            after = Keyring(ring.keys | {number: rotation.key}, ring.current)
        case Step.USE:
            if ring.keys.get(number) != rotation.key:
                raise RotationRefused(f"key {number} was not accepted here yet; rotate again")
            after = Keyring(ring.keys, number)
        case _:
            if ring.current != number:
                raise RotationRefused(f"key {ring.current} still seals here, and not {number}; rotate again")
            after = Keyring({number: ring.keys[number]}, number)
    return kept if after == ring else Kept(after, kept.changes + 1)
