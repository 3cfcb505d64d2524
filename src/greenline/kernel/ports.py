"""The group communication port: what a user may ask of an ordered, partitionable multicast, and what it is told.

The Ring, Lansis and the simulator's adversary provide it; the replication engine and process groups use it.
`Multicast` is a downcall, all others are upcalls. Generating a message (the `Multicast` call) and sending it
(`Sent`: it has its place in a configuration) are two events; a configuration change may fall between them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from greenline.kernel.identities import Configuration, MessageId


class Service(StrEnum):
    """How much a delivery promises, from least to most."""

    BASIC = "basic"
    CAUSAL = "causal"
    AGREED = "agreed"
    SAFE = "safe"


class Multicast(msgspec.Struct, frozen=True, gc=False):
    """Generate a message. The user numbers its messages densely from 1 in each life."""

    message: MessageId
    service: Service
    payload: bytes


class Busy(msgspec.Struct, frozen=True, gc=False):
    """This message was not taken, and none will be until `Ready`. Its number is free to be used again."""

    message: MessageId


class TooLarge(msgspec.Struct, frozen=True, gc=False):
    """This message was not taken, and never will be: it has more than `limit` bytes. Its number is free."""

    message: MessageId
    limit: int


class Ready(msgspec.Struct, frozen=True, gc=False):
    """The port takes messages again."""


class Sent(msgspec.Struct, frozen=True, gc=False):
    """Our own message has its place in the configuration that we are in."""

    message: MessageId


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A message, in order. `seq` and `sub` are the provider's witness of its place, where it has one."""

    message: MessageId
    service: Service
    payload: bytes
    seq: int | None = None
    sub: int | None = None


class TransitionalConf(msgspec.Struct, frozen=True, gc=False):
    conf: Configuration


class RegularConf(msgspec.Struct, frozen=True, gc=False):
    conf: Configuration
