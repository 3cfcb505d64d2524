"""Datagrams through the kernel: runs of them in one call, and what waited too long in our own socket."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from greenline.node.transport import SO_TIMESTAMPNS, STALE_S, Address, Link, Transport, mtu, room


@pytest.fixture
def pair() -> Iterator[tuple[Transport, Transport, Address]]:
    one, other = (Transport(("127.0.0.1", 0), Link()) for _ in range(2))
    yield one, other, other.sockets[0].getsockname()
    one.close()
    other.close()


def taken(transport: Transport, least: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 5
    while len(found) < least:
        assert time.monotonic() < deadline, f"{len(found)} of {least} came"
        transport.drain(transport.sockets[0], lambda packet, _: found.append(packet))
    return found


@pytest.mark.parametrize(
    "lengths",
    [[1400] * 100, [1400] * 7 + [90], [100, 100, 50, 100, 200, 200], [60_000] * 4, [1], [9, 9, 9, 10, 8, 8, 8]],
    ids=str,
)
def test_packets_come_as_they_were_sent_however_few_calls_they_take(
    pair: tuple[Transport, Transport, Address], lengths: list[int]
) -> None:
    one, other, there = pair
    packets = [bytes([number % 251]) * length for number, length in enumerate(lengths)]
    one.send(packets, [there])
    assert taken(other, len(packets)) == packets
    assert one.traffic.packets_out == other.traffic.packets_in == len(packets)
    assert one.traffic.bytes_out == other.traffic.bytes_in == sum(lengths)


def until_arrivals_are_timed() -> None:
    """The kernel begins to a moment after somebody has asked for it; what came before has the time when it is read."""
    deadline = time.monotonic() + 5
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
        one.bind(("127.0.0.1", 0))
        one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        arrived = read = 0.0
        while arrived >= read - 0.01:
            assert time.monotonic() < deadline, "the kernel does not say when packets come"
            other.sendto(b"when?", one.getsockname())
            time.sleep(0.02)
            _, ((_, _, value),), *_ = one.recvmsg(16, socket.CMSG_SPACE(16))
            seconds, nanoseconds = struct.unpack("=qq", value)
            arrived, read = seconds + nanoseconds / 1e9, time.time()


def test_what_came_while_we_were_stopped_is_old_news(pair: tuple[Transport, Transport, Address]) -> None:
    one, other, there = pair
    until_arrivals_are_timed()
    one.send([b"then", b"news"], [there])
    time.sleep(STALE_S + 0.05)
    one.send([b"now"], [there])
    assert taken(other, 1) == [b"now"]
    assert other.refused["stale"] >= 1


def test_what_nobody_takes_is_counted(pair: tuple[Transport, Transport, Address]) -> None:
    one, _, _ = pair
    one.send([b"x" * 70_000], [("127.0.0.1", 9)])
    assert one.refused["not sent"] == 1
    assert one.traffic.packets_out == 0


def test_a_packet_fills_what_the_link_carries() -> None:
    assert mtu(("127.0.0.1", 0), [("127.0.0.1", 9)]) == 65_535, "what IP can say"
    assert room(1500, socket.AF_INET) == 1472
    assert room(1500, socket.AF_INET6) == 1452
    assert room(65_536, socket.AF_INET) == 65_507
