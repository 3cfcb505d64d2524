"""Whoever is on the wire without the key, with an old one, with a recording, or under another's name."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Deliver, RegularConf
from greenline.node.sealing import KEY_BYTES, Keyring
from greenline.node.transport import Address, Link
from tests.node.test_driver import RING_OF_KEYS, Machine, free_addresses, run, until

pytestmark = pytest.mark.slow

ALL_FRAMES = 0x0003
IP_HEADER = 14 + 9
OLD, NEW = b"k" * KEY_BYTES, b"n" * KEY_BYTES


class Wire:
    """Everything that is said to these ports on loopback, as a stranger hears it."""

    def __init__(self, ports: frozenset[int]) -> None:
        self._ports = ports
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)
        self._socket.bind(("lo", 0))
        self._socket.setblocking(False)

    def heard(self) -> list[bytes]:
        datagrams: list[bytes] = []
        while True:
            try:
                frame, (_, _, kind, _, _) = self._socket.recvfrom(65_535)
            except BlockingIOError:
                return datagrams
            if kind != socket.PACKET_OUTGOING and frame[IP_HEADER] == socket.IPPROTO_UDP:
                port = struct.unpack_from(">H", frame, 36)[0]
                if port in self._ports:
                    datagrams.append(frame[42:])

    def close(self) -> None:
        self._socket.close()


@contextmanager
def listening(addresses: dict[ProcId, Address]) -> Iterator[Wire]:
    wire = Wire(frozenset(port for _, port in addresses.values()))
    try:
        yield wire
    finally:
        wire.close()


def send_all(datagrams: list[bytes], to: Address) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for datagram in datagrams:
            stranger.sendto(datagram, to)


def confs(machine: Machine) -> int:
    return sum(isinstance(told, RegularConf) for told in machine.told)


async def heard_out(machines: dict[ProcId, Machine], sent: int, before: dict[ProcId, int]) -> None:
    """Until each has refused so many more datagrams."""
    await until(lambda: all(refusals(machine) >= before[name] + sent for name, machine in machines.items()))


async def all_have(machines: dict[ProcId, Machine], delivered: int) -> None:
    await until(lambda: all(len(machine.delivered) == delivered for machine in machines.values()))


def refusals(machine: Machine) -> int:
    return sum(machine.node.refused.values())


def test_a_recording_is_refused_by_everybody(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        addresses = machines["p"].addresses
        with listening(addresses) as wire:
            for number in range(20):
                machines["p"].multicast(f"once {number}")
            await until(lambda: all(len(machine.delivered) == 20 for machine in machines.values()))
            machines["r"].stop()
            await until(lambda: machines["p"].members == ("p", "q"))
            machines["r"].restart()
            await until(lambda: all(machine.members == ("p", "q", "r") for machine in machines.values()))
            recording = wire.heard()
        assert len(recording) > 50, "a whole merge, and what was said"
        before = {name: refusals(machine) for name, machine in machines.items()}
        told = {name: confs(machine) for name, machine in machines.items()}
        for address in addresses.values():
            send_all(recording, address)
        await heard_out(machines, len(recording), before)
        machines["q"].multicast("after all that")
        await until(lambda: all(machine.delivered[-1:] == ["after all that"] for machine in machines.values()))
        assert {name: confs(machine) for name, machine in machines.items()} == told, "no configuration has changed"
        assert len(machines["p"].delivered) == 21

    run(tmp_path, story)


def test_a_node_that_has_just_started_believes_no_recording_either(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        addresses = machines["p"].addresses
        with listening(addresses) as wire:
            machines["p"].multicast("once")
            await until(lambda: machines["r"].delivered == ["once"])
            machines["r"].stop()
            await until(lambda: machines["p"].members == ("p", "q"))
            recording = wire.heard()
        machines["r"].restart()
        send_all(recording, addresses["r"])  # before anybody who lives can speak to it
        await until(lambda: refusals(machines["r"]) >= len(recording))
        await until(lambda: all(machine.members == ("p", "q", "r") for machine in machines.values()))
        told = [event for event in machines["r"].told if isinstance(event, RegularConf | Deliver)]
        members = [event.conf.members for event in told if isinstance(event, RegularConf)]
        assert members[0] == ("r",)
        assert set(members[1:]) <= {("p", "q", "r")}
        assert machines["r"].delivered == []
        assert machines["r"].node.refused["not met yet"] > 0

    run(tmp_path, story)


def test_keys_are_rotated_under_load_and_who_has_only_the_old_one_stays_outside(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        both = {1: OLD, 2: NEW}
        before = {name: confs(machine) for name, machine in machines.items()}
        for step, keyring in enumerate((Keyring(both, 1), Keyring(both, 2), Keyring({2: NEW}, 2)), 1):
            for machine in machines.values():
                machine.multicast(f"{machine.name} under {sorted(keyring.keys)}")
                machine.node.rekey(keyring)
            await all_have(machines, 3 * step)
        assert {name: confs(machine) for name, machine in machines.items()} == before, "nobody left"
        machines["r"].stop()
        await until(lambda: machines["p"].members == ("p", "q"))
        told = confs(machines["p"])
        machines["r"].restart()  # with the key of its file, which nobody has changed
        await until(lambda: machines["p"].node.refused["an unknown key"] > 20)
        assert confs(machines["p"]) == told
        assert machines["r"].members == ("r",)
        assert RING_OF_KEYS.keys == {1: OLD}

    run(tmp_path, story)


def test_another_node_under_a_members_name_is_told_and_stops_and_the_member_goes_on(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        addresses = machines["p"].addresses | {"q": free_addresses("q")["q"]}
        (tmp_path / "elsewhere").mkdir()
        twin = Machine("q", addresses, tmp_path / "elsewhere", [], Link())
        try:
            await until(lambda: twin.node.stopped is not None)
            assert "knows another node by the name q: give this node a name of its own" in str(twin.node.stopped)
        finally:
            twin.node.close()
        assert any("q" in machine.node.strangers for machine in machines.values())
        machines["q"].multicast("it is me")
        await until(lambda: machines["p"].delivered == ["it is me"])

    run(tmp_path, story)


@pytest.mark.parametrize("size", [0, 1, 60, 1400])
def test_garbage_is_refused_and_counted(tmp_path: Path, size: int) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        target = machines["p"]
        before, told = refusals(target), confs(target)
        send_all([bytes([number]) * size for number in range(250)], target.addresses["p"])
        await until(lambda: refusals(target) >= before + 250)
        machines["q"].multicast("as if nothing had been")
        await until(lambda: target.delivered == ["as if nothing had been"])
        assert confs(target) == told

    run(tmp_path, story)
