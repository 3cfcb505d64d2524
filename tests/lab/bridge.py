"""A learning bridge in user space, for kernels without netem: `python -m tests.lab.bridge SEED PORT...`.

It runs by itself so that a busy test does not slow the network down. A line with a `Change` on stdin is answered by a
line on stdout when it is in force; the end of stdin is the end of the bridge, so it does not outlive a killed test.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random
from time import monotonic

import msgspec

from tests.lab.faults import CALM, Answer, Change, Counters, Faults

# From linux/if_packet.h and asm-generic/socket.h; the socket module does not name them.
SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP = 1
PACKET_MR_PROMISC = 1
PACKET_STATISTICS = 6
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3

# The virtio_net_hdr that stands before each frame. A veth leaves checksums to hardware that it does not have; the
# header says that they are still to be made, and the receiving end then believes the frame as it would on a real veth.
VNET = 10
RECEIVER = slice(VNET, VNET + 6)
SENDER = slice(VNET + 6, VNET + 12)
ETHERTYPE = slice(VNET + 12, VNET + 14)
IPV4_PROTOCOL = VNET + 14 + 9
IPV6_NEXT_HEADER = VNET + 14 + 6
ICMPV6_TYPE = VNET + 14 + 40

BURST = 64
BACKLOG = 10_000
HELD_S = 0.003
ROOM_FOR_FRAMES = 32 << 20


class Link:
    """One direction between two ports, with chances of its own: what others send does not change its luck."""

    def __init__(self, seed: str, sender: str, receiver: str, out: socket.socket) -> None:
        self.out = out
        self.faults = CALM
        self.is_cut = False
        self.is_plain = True
        self.counters = Counters()
        self.chance = Random(f"{seed} {sender} {receiver}").random
        self.last_due = 0.0

    def become(self, faults: Faults) -> None:
        self.faults = faults
        self._settle()

    def cut(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        self.last_due = 0.0 if is_cut else self.last_due
        self._settle()

    def _settle(self) -> None:
        # What is still under way on a link that was slow has to arrive first.
        self.is_plain = self.faults == CALM and not self.is_cut and self.last_due <= monotonic()

    def dues(self, frame: memoryview, now: float) -> list[float]:
        """When this frame is to be delivered: never, once, or twice."""
        if self.is_cut:
            self.counters.cut += 1
            return []
        faults = self.faults
        if faults == CALM and self.last_due <= now:
            self.is_plain = True
        if is_about_neighbours(frame):
            return [self._due(now)]
        if faults.loss and self.chance() < faults.loss:
            self.counters.lost += 1
            return []
        dues = [self._due_or_reordered(now)]
        if faults.duplicate and self.chance() < faults.duplicate:
            self.counters.duplicated += 1
            dues.append(self._due(now))
        return dues

    def _due_or_reordered(self, now: float) -> float:
        if self.faults.reorder and self.chance() < self.faults.reorder:
            self.counters.reordered += 1
            return now if self.faults.delay else now + HELD_S
        return self._due(now)

    def _due(self, now: float) -> float:
        due = now + self.faults.delay
        if self.faults.jitter:
            due += self.faults.jitter * self.chance()
            self.last_due = max(due, self.last_due)
        else:
            due = self.last_due = max(due, self.last_due)
        return due


def is_about_neighbours(frame: memoryview) -> bool:
    """ARP, neighbour discovery and group membership are cut and delayed with the rest, but not lost or duplicated.

    A lost ARP request holds all traffic of a pair back for the second until the next: a short cut, where a loss of
    single datagrams was asked for. And it is sent when a kernel thinks fit: it must not draw from the seeded chances.
    """
    match bytes(frame[ETHERTYPE]):
        case b"\x08\x00":
            return frame[IPV4_PROTOCOL] == 2  # IGMP
        case b"\x86\xdd":
            # Multicast listener reports stand behind a hop-by-hop header; below 130 are errors and echoes.
            following = frame[IPV6_NEXT_HEADER]
            return following == 0 or (following == 58 and frame[ICMPV6_TYPE] >= 130)
        case _:
            return True


class Bridge:
    """Ports, what is known to live behind them, and the frames that are to be delivered later."""

    def __init__(self, seed: str, names: list[str]) -> None:
        self._ports = [opened(name) for name in names]
        self._links = {
            (sender, receiver): Link(seed, sender, receiver, out)
            for sender in names
            for receiver, out in zip(names, self._ports, strict=True)
            if sender != receiver
        }
        self._towards = {
            port: {
                out: self._links[sender, name] for name, out in zip(names, self._ports, strict=True) if name != sender
            }
            for sender, port in zip(names, self._ports, strict=True)
        }
        self._seen_behind: dict[bytes, socket.socket] = {}
        self._later: list[tuple[float, int, Link, bytes]] = []
        self._number = count()
        self._buffer = memoryview(bytearray(VNET + 65_536 + 18))
        self._asked = b""
        self._overrun = 0

    def run(self) -> None:
        """Until stdin ends. `select`, not epoll: the ports are few, and it can wait for less than a millisecond."""
        wanted: list[socket.socket | int] = [0, *self._ports]
        self._answer()
        while True:
            wait = max(0.0, self._later[0][0] - monotonic()) if self._later else None
            for each in select.select(wanted, [], [], wait)[0]:
                if isinstance(each, socket.socket):
                    self._forward(each, BURST)
                elif not self._obey():
                    return
            if self._later:
                self._deliver_due()

    def _forward(self, port: socket.socket, most: int) -> None:
        """What has come in at this port, but not so much that others would wait."""
        buffer, seen_behind, towards = self._buffer, self._seen_behind, self._towards[port]
        for _ in range(most):
            try:
                size = port.recv_into(buffer)
            except BlockingIOError:
                return
            frame = buffer[:size]
            seen_behind[bytes(frame[SENDER])] = port
            # No sender has a group address, so broadcasts and multicasts are unknown for ever, and flooded.
            known = seen_behind.get(bytes(frame[RECEIVER]))
            if known is port:
                continue
            for link in towards.values() if known is None else (towards[known],):
                if link.is_plain:
                    self._send(link, frame)
                else:
                    self._forward_with_faults(link, frame)

    def _forward_with_faults(self, link: Link, frame: memoryview) -> None:
        now = monotonic()
        for due in link.dues(frame, now):
            if due <= now:
                self._send(link, frame)
            else:
                heappush(self._later, (due, next(self._number), link, bytes(frame)))

    def _deliver_due(self) -> None:
        now = monotonic()
        later = self._later
        while later and later[0][0] <= now:
            _, _, link, frame = heappop(later)
            self._send(link, frame)

    def _send(self, link: Link, frame: memoryview | bytes) -> None:
        try:
            link.out.send(frame)
        except OSError:
            self._overrun += 1
        else:
            link.counters.forwarded += 1

    def _obey(self) -> bool:
        """Do what stdin says; False when it has ended."""
        some = os.read(0, 65_536)
        *lines, self._asked = (self._asked + some).split(b"\n")
        # What was sent before a change meets the links as they were before it. On a busy link that would have no end.
        for port in self._ports:
            self._forward(port, BACKLOG)
        for line in lines:
            change = msgspec.json.decode(line, type=Change)
            for sender, receiver, faults in change.links:
                self._links[sender, receiver].become(faults)
            if change.cuts is not None:
                self._cut(change.cuts)
            self._answer()
        return some != b""

    def _cut(self, cuts: list[tuple[str, str]]) -> None:
        """A cut takes what is under way, too: once it is in force, nothing arrives."""
        for pair, link in self._links.items():
            link.cut(pair in cuts)
        for _, _, link, _ in self._later:
            link.counters.cut += link.is_cut
        self._later = [each for each in self._later if not each[2].is_cut]
        heapify(self._later)

    def _answer(self) -> None:
        for port in self._ports:
            # Reading them sets them to zero.
            _, drops = struct.unpack("II", port.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
            self._overrun += drops
        links = [(*pair, link.counters) for pair, link in self._links.items()]
        sys.stdout.buffer.write(msgspec.json.encode(Answer(links, self._overrun)) + b"\n")
        sys.stdout.buffer.flush()


def opened(name: str) -> socket.socket:
    """A socket that hears what comes out of this interface and sends into it, frame by frame."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_FOR_FRAMES)
    promiscuous = struct.pack("iHH8s", socket.if_nametoindex(name), PACKET_MR_PROMISC, 0, b"")
    port.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous)
    port.setblocking(False)
    # Bound last: from here on it hears, and all that it hears has the header.
    port.bind((name, ETH_P_ALL))
    return port


if __name__ == "__main__":
    Bridge(sys.argv[1], sys.argv[2:]).run()
