"""Identities: who speaks, in which life, in which configuration, and what was said.

Every identity is unique across crashes, because each contains either a configuration's counter or the
incarnation of a process, and the kernel forces a new incarnation to disk before the first packet of a life.
Their text forms cannot be mistaken for each other: configuration `p.12`, transitional configuration
`p.12>q.13`, message `p:2:17` (the 17th of p's second life).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

ProcId = str
"""A process's name for life: what an administrator calls the machine. See `proc_id`."""

NAME = "^[A-Za-z0-9_-]{1,32}$"
"""What a name looks like, for types of messages that carry one."""


def proc_id(name: str) -> ProcId:
    """The name itself, if it can be one: identities are written with `. : > *` and blanks around names."""
    if not re.fullmatch(NAME, name) or name.endswith("\n"):
        raise ValueError(f"{name!r} cannot name a process: use 1 to 32 letters, digits, '-' or '_'")
    return name


class ConfId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A regular configuration. The counter is a Lamport clock over configurations, so it comes first."""

    counter: int
    rep: ProcId

    def __str__(self) -> str:
        return f"{self.rep}.{self.counter}"


class TransId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A transitional configuration: unique, and known to each member without a further message."""

    old: ConfId
    new: ConfId

    def __str__(self) -> str:
        return f"{self.old}>{self.new}"


class Configuration(msgspec.Struct, frozen=True, gc=False):
    conf_id: ConfId | TransId
    members: tuple[ProcId, ...]

    def __str__(self) -> str:
        return f"{self.conf_id} {{{' '.join(self.members)}}}"


class MessageId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A message of the group communication port, numbered by the port's user from 1 in each life."""

    sender: ProcId
    incarnation: int
    number: int

    def __str__(self) -> str:
        return f"{self.sender}:{self.incarnation}:{self.number}"


def in_order(members: Iterable[ProcId]) -> tuple[ProcId, ...]:
    """Members as they are emitted: a set of names has another order in every process."""
    return tuple(sorted(members))
