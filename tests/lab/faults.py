"""What a link does to its frames, how it tells of it, and the lines in which the lab and its bridge speak."""

from __future__ import annotations

import msgspec


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What befalls the frames of an ordered pair of sites. Without `reorder` and `jitter` they stay in their order.

    A frame takes `delay` seconds and up to `jitter` more. One that is reordered skips its delay, and is held for a
    moment where there is none.
    """

    delay: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)} is no probability; give one between 0 and 1")
        for name in ("delay", "jitter"):
            if not 0 <= getattr(self, name) <= 3600:
                raise ValueError(f"{name} = {getattr(self, name)} is no time on a link; give 0 to 3600 seconds")


CALM = Faults()


class Counters(msgspec.Struct):
    """What became of the frames; a duplicated one is forwarded twice.

    `overrun` should stay 0: the bridge was too slow and lost frames that nobody asked it to lose.
    """

    forwarded: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    cut: int = 0
    overrun: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            *(mine + theirs for mine, theirs in zip(*map(msgspec.structs.astuple, (self, other)), strict=True))
        )


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line to the bridge: these links, by sender and receiver, change; and these are all the cuts, unless None."""

    links: list[tuple[str, str, Faults]] = []
    cuts: list[tuple[str, str]] | None = None


class Answer(msgspec.Struct, frozen=True):
    """A line from the bridge, written when the change is in force."""

    links: list[tuple[str, str, Counters]]
    overrun: int
