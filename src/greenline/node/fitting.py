"""Fitting: the Ring's settings for the network that a node is on, where the operator has not chosen them.

A packet of the Ring, with all that is put around it, is one datagram that the link carries without fragments; what may
be under way at once fits the buffer that the kernel has granted, however small it is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from greenline.kernel.codec import HEADER_SIZE
from greenline.kernel.identities import ConfId, ProcId
from greenline.kernel.ports import Service
from greenline.node import transport
from greenline.node.sealing import overhead
from greenline.node.transport import Address, Link
from greenline.ring.messages import Regular
from greenline.ring.settings import Reach, Settings

ARRAY_HEADERS = 10
"""Around the body of a packet, and around the messages in it."""
LARGEST_PACKET = 60_000
"""On loopback: larger ones gain nothing."""
OTHERS = 3
"""The part of a receiver's buffer that a rotation may fill: repeats, and what others say to it, have room as well."""
LEAST_CHARGE = 2304
"""What the kernel counts for a packet of a common link, with what it keeps beside it."""
LEAST_WINDOW, MOST_WINDOW = 16, 512
"""Packets in a rotation: with more, each does more before the token goes on, and its cost is shared by more."""


def fit(chosen: dict[str, Any], me: ProcId, addresses: dict[ProcId, Address], link: Link) -> Settings:
    """What was chosen, and for the rest what fits. A value that cannot be is a `ValueError` that says so."""
    buffer = transport.granted_buffer()
    window = max(LEAST_WINDOW, min(MOST_WINDOW, buffer // OTHERS // LEAST_CHARGE))
    fitted: dict[str, Any] = {
        "reach": Reach.MULTICAST if link.multicast is not None else Reach.UNICAST,
        "packet_bytes": _packet_bytes(me, addresses, link),
        "window": window,
        "window_bytes": max(1, buffer // OTHERS),
        "outstanding": 4 * window,
    }
    try:
        return msgspec.convert(fitted | chosen, Settings)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _packet_bytes(me: ProcId, addresses: dict[ProcId, Address], link: Link) -> int:
    others = [address for name, address in addresses.items() if name != me]
    mtu = link.mtu if link.mtu is not None else transport.mtu(addresses[me], others)
    around = overhead(me) + HEADER_SIZE + _longest_header(me, addresses) + ARRAY_HEADERS
    packet = transport.room(mtu, transport.family_of(addresses[me])) - around
    if packet < 8:
        raise ValueError(f"a link of mtu = {mtu} carries no packet; the least that any network has is 576")
    return min(packet, LARGEST_PACKET)


def _longest_header(me: ProcId, addresses: dict[ProcId, Address]) -> int:
    longest = max(addresses, key=len)
    most = 2**62
    header = Regular(ConfId(most, longest), me, most, most, Service.CAUSAL, most, 2**31, 2**31, b"")
    return len(msgspec.msgpack.encode(header))
