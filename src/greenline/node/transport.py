"""Transport: one node's datagrams. Sockets of our own, drained in batches; several packets in one call of the kernel.

A packet is one datagram that the link carries without fragments. Where the kernel can, a run of packets of one length
goes down in one call and comes up in one (segmentation offload): each is still a datagram with a seal of its own. By
multicast one datagram reaches everybody.
"""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

Address = tuple[str, int]

AT_MOST = 64
"""Datagrams that are taken in one go, before timers and the disk have their turn."""
LARGEST_DATAGRAM = 65_507
BUFFER_BYTES = 8 << 20
MOST_SEGMENTS = 64
"""The kernel takes no more in one call."""
LARGEST_RUN = 60_000
STALE_S = 0.5
"""Who was stopped for longer finds in its socket what was said meanwhile: old news, about who was there then."""
UDP_SEGMENT = 103
UDP_GRO = 104
SO_TIMESTAMPNS = 35
SO_ATTACH_FILTER = 26
SO_MEMINFO = 55
_SEGMENT = struct.Struct("=H")
_GRO = struct.Struct("=i")
_TIMESTAMP = struct.Struct("=qq")
_INSTRUCTION = struct.Struct("=HBBI")
_MEMORY = struct.Struct("=9I")
_ANCILLARY = socket.CMSG_SPACE(_GRO.size) + socket.CMSG_SPACE(_TIMESTAMP.size)
IP_MTU = 14
IPV6_MTU = 24
UDP_HEADER = 8


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may say of the network between the nodes."""

    multicast: Address | None = None
    """A group that reaches everybody with one datagram."""
    interface: str | None = None
    """Where the group is joined; None: where the kernel finds it."""
    mtu: int | None = None
    """The largest packet of the link, headers included; None: what the kernel says of the way to the others."""


class Traffic(msgspec.Struct):
    packets_in: int = 0
    packets_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    forced_writes: int = 0


def family_of(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def mtu(me: Address, others: Iterable[Address]) -> int:
    """The largest packet, headers included, that the first hop to each of them takes."""
    found = [_mtu_of_the_way(me, other) for other in others]
    return min(found, default=LARGEST_DATAGRAM)


def _mtu_of_the_way(me: Address, other: Address) -> int:
    family = family_of(other)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((me[0], 0))
            probe.connect(other)
        except OSError:
            return 1500 if family is socket.AF_INET else 1280  # no way there yet: what every such link carries
        if family is socket.AF_INET6:
            return probe.getsockopt(socket.IPPROTO_IPV6, IPV6_MTU)
        return probe.getsockopt(socket.IPPROTO_IP, IP_MTU)


def room(mtu: int, family: socket.AddressFamily) -> int:
    """What a datagram carries on such a link."""
    ip_header = 40 if family is socket.AF_INET6 else 20
    return min(mtu - ip_header - UDP_HEADER, LARGEST_DATAGRAM)


class Transport:
    """The sockets of one node: its own, and the group's where there is one."""

    def __init__(self, me: Address, link: Link, first: int | None = None) -> None:
        """`first`: the byte that every packet of ours begins with. What does not is dropped by the kernel, unread."""
        self.refused: Counter[str] = Counter()
        """What the kernel did not take, or said of what we sent before."""
        self.traffic = Traffic()
        self._own = _bound(me)
        self._group = link.multicast
        self.sockets = [self._own]
        try:
            if link.multicast is not None:
                self.sockets.append(_bound(link.multicast))
                _join(self.sockets[-1], link.multicast, me, link.interface)
                _send_through(self._own, me, link)
        except OSError:
            self.close()
            raise
        if first is not None:
            for each in self.sockets:
                _drop_all_but(each, first)
        self._has_runs = _allow_runs(self.sockets)
        self._buffer = bytearray(1 << 16)
        self._view = memoryview(self._buffer)

    def close(self) -> None:
        for each in self.sockets:
            each.close()

    def dropped(self) -> int:
        """What the kernel has dropped: garbage, and what there was no room for."""
        return sum(
            _MEMORY.unpack(each.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMORY.size))[-1] for each in self.sockets
        )

    def drain(self, source: socket.socket, take: Callable[[bytes, Address], None]) -> None:
        """Hand over what has come, datagram by datagram; then let others have a turn."""
        traffic = self.traffic
        for _ in range(AT_MOST):
            try:
                size, ancillary, _, sender = source.recvmsg_into([self._buffer], _ANCILLARY)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.refused["unreachable"] += 1  # the echo of something that we sent to nobody
                continue
            traffic.bytes_in += size
            each, is_stale = size, False
            for _, kind, value in ancillary:
                if kind == UDP_GRO:
                    each = _GRO.unpack(value)[0]
                elif kind == SO_TIMESTAMPNS:
                    is_stale = _arrived(value) < time.time() - STALE_S
            if is_stale:
                self.refused["stale"] += 1
                continue
            data = bytes(self._view[:size])
            if each >= size:
                traffic.packets_in += 1
                take(data, sender)
                continue
            traffic.packets_in += -(-size // each)
            for at in range(0, size, each):
                take(data[at : at + each], sender)

    def send(self, packets: Sequence[bytes], to: Iterable[Address]) -> None:
        """The same packets to each of these, in order."""
        runs = _runs(packets) if self._has_runs and len(packets) > 1 else [[packet] for packet in packets]
        for address in to:
            for run in runs:
                self._send_run(run, address)

    def multicast(self, packets: Sequence[bytes]) -> None:
        assert self._group is not None, "there is a group to send to"
        self.send(packets, (self._group,))

    def _send_run(self, run: list[bytes], to: Address) -> None:
        traffic = self.traffic
        try:
            if len(run) == 1:
                traffic.bytes_out += self._own.sendto(run[0], to)
            else:
                size = _SEGMENT.pack(len(run[0]))
                traffic.bytes_out += self._own.sendmsg(run, ((socket.IPPROTO_UDP, UDP_SEGMENT, size),), 0, to)
        except BlockingIOError:
            self.refused["not sent"] += len(run)  # a full buffer: the network loses packets
        except OSError:
            if len(run) == 1:
                self.refused["not sent"] += 1
                return
            for packet in run:  # a link that carries less than these, or knows no runs
                self._send_run([packet], to)
        else:
            traffic.packets_out += len(run)


def _arrived(value: bytes) -> float:
    """When the kernel had it, by the clock on the wall."""
    seconds, nanoseconds = _TIMESTAMP.unpack(value)
    return float(seconds + nanoseconds / 1e9)


def _runs(packets: Sequence[bytes]) -> list[list[bytes]]:
    """Packets of one length, of which the last may be shorter: what the kernel takes in one call."""
    runs: list[list[bytes]] = []
    size = length = 0
    for packet in packets:
        run = runs[-1] if runs else None
        fits = run is not None and len(run[-1]) == size >= len(packet) and len(run) < MOST_SEGMENTS
        if run is not None and fits and length + len(packet) <= LARGEST_RUN:
            run.append(packet)
            length += len(packet)
        else:
            runs.append([packet])
            size = length = len(packet)
    return runs


def _bound(address: Address) -> socket.socket:
    made = socket.socket(family_of(address), socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        _widen(made)
        if ipaddress.ip_address(address[0]).is_multicast:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # several nodes of one machine are in the group
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def granted_buffer() -> int:
    """How many bytes may wait in a socket here, as the kernel counts them: with what it keeps beside each packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        _widen(asked)
        return asked.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def _widen(made: socket.socket) -> None:
    """As large a buffer as we may have; what was granted decides how much may be under way."""
    for plain, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):
        try:
            made.setsockopt(socket.SOL_SOCKET, forced, BUFFER_BYTES)  # an administrator may exceed the system's limit
        except PermissionError:
            made.setsockopt(socket.SOL_SOCKET, plain, BUFFER_BYTES)


def _join(made: socket.socket, group: Address, me: Address, interface: str | None) -> None:
    if family_of(group) is socket.AF_INET6:
        index = socket.if_nametoindex(interface) if interface else 0
        joined = socket.inet_pton(socket.AF_INET6, group[0]) + struct.pack("=I", index)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
    else:
        joined = socket.inet_aton(group[0]) + _ipv4_interface(me, interface)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)


def _send_through(own: socket.socket, me: Address, link: Link) -> None:
    """Where multicasts leave; they also reach the other nodes of this machine."""
    if family_of(me) is socket.AF_INET6:
        index = socket.if_nametoindex(link.interface) if link.interface else 0
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    else:
        any_group = bytes(4)
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, any_group + _ipv4_interface(me, link.interface))
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def _ipv4_interface(me: Address, interface: str | None) -> bytes:
    """An `ip_mreqn` without the group: our address, and the interface's index if one was named."""
    index = socket.if_nametoindex(interface) if interface else 0
    return socket.inet_aton(me[0]) + struct.pack("=I", index)


def _drop_all_but(made: socket.socket, first: int) -> None:
    """Four instructions of the kernel's packet filter: if the first byte of the datagram is this one, all of it."""
    load_byte, jump_if_equal, give = 0x30, 0x15, 0x06
    program = b"".join(
        _INSTRUCTION.pack(*each)
        for each in (
            (load_byte, 0, 0, UDP_HEADER),
            (jump_if_equal, 0, 1, first),
            (give, 0, 0, 0xFFFF_FFFF),
            (give, 0, 0, 0),
        )
    )
    kept = ctypes.create_string_buffer(program)
    with suppress(OSError):  # a kernel without it: they are refused one by one
        made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", 4, ctypes.addressof(kept)))


def _allow_runs(sockets: list[socket.socket]) -> bool:
    """Can this kernel take and give several packets at once?"""
    try:
        for each in sockets:
            each.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    except OSError:
        return False
    return True
