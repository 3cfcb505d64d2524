"""Settings: what an operator may choose. Within their bounds all values are correct, the same everywhere or not."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reach(StrEnum):
    """How everybody is reached."""

    UNICAST = "unicast"
    """A datagram to each member."""
    MULTICAST = "multicast"
    """One datagram that everybody hears, strangers too."""


BOUNDS: dict[str, tuple[float, float]] = {
    "packet_bytes": (8, 65_000),
    "largest_message": (1, 1 << 30),
    "most_queued": (1, 1 << 30),
    "most_queued_bytes": (1, 1 << 40),
    "personal": (1, 4096),
    "window": (1, 4096),
    "window_bytes": (1, 1 << 40),
    "outstanding": (1, 8192),
    "grace": (0, 1),
    "accelerated": (0, 4096),
    "fail_to_receive": (2, 1 << 62),
    "first_rtt": (0.000_01, 10),
    "longest_rtt": (0.001, 60),
    "least_retransmit": (0.000_1, 60),
    "retransmits": (0, 100),
    "idle_hold": (0.000_1, 60),
    "probe": (0.001, 600),
}
"""Least and most. `outstanding` keeps a Form token in one datagram; the others keep clear of nonsense."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    reach: Reach = Reach.UNICAST
    packet_bytes: int = 1300
    """How much of messages a packet carries: what the link takes without fragments, less the headers."""
    largest_message: int = 16 << 20
    most_queued: int = 4096
    """Messages that may wait for the token before the port is busy."""
    most_queued_bytes: int = 8 << 20

    personal: int = 20
    """Packets that a processor says on one visit, to begin with (5.3 found 20); it adapts."""
    window: int = 128
    """Packets that all processors say in one rotation, repeats included."""
    window_bytes: int = 1 << 20
    """The same in bytes: at most half of a receiver's buffer."""
    outstanding: int = 512
    """How far `seq` may run ahead of `aru`: the bound on what everybody keeps."""
    grace: int = 1
    """1: ask only for what was missing a rotation ago already; 0: at once."""
    accelerated: int = 15
    """How many of its packets a processor says after it has passed the token on; needs `grace`.

    On switched links it orders half as many more (`greenline bench ring --simulated`); on a shared bus it is worth
    nothing and costs nothing.
    """
    fail_to_receive: int = 100
    """Visits on which somebody holds `aru` back before it is left behind."""

    first_rtt: float = 0.010
    """Seconds that a round trip is taken to last before one was measured; no timeout assumes less."""
    longest_rtt: float = 1.0
    """A longer one is taken for a process that was stopped."""
    least_retransmit: float = 0.020
    """No token is sent again sooner."""
    retransmits: int = 4
    """How often it is before it counts as lost."""
    idle_hold: float = 0.200
    """How long the representative of an idle ring holds the token."""
    probe: float = 0.200
    """How often the representative of a ring shows that it is there."""

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} = {value:g} is not between {least:g} and {most:g}")
