"""Three nodes on real sockets and real logs, in one event loop: a ring, an order, a restart, strangers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.kernel.identities import MessageId, ProcId
from greenline.kernel.ports import Deliver, Multicast, RegularConf, Service
from greenline.kernel.router import Layer
from greenline.node.driver import Address, Node
from greenline.node.log import Log
from greenline.node.sealing import KEY_BYTES
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling
from greenline.ring.settings import Settings
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table

KEY = {1: b"k" * KEY_BYTES}
PATIENCE_S = 20.0


class Machine:
    """One node with its place on the network and on disk, and what its application was told."""

    def __init__(self, name: ProcId, addresses: dict[ProcId, Address], place: Path, rows: list[Row]) -> None:
        self.name = name
        self.told: list[Any] = []
        self.said = 0
        self._addresses = addresses
        self._place = place
        self._rows = rows
        self.node = self._made(KEY)

    def _made(self, keys: dict[int, bytes]) -> Node:
        layers = [Layer("ring", 1, RingCore(Settings()), AnyMessage, Ceiling)]
        log = Log(self._place / f"{self.name}.log")
        node = Node(self.name, self._addresses, layers, log, keys, tell=self.told.append, trace=self._rows.append)
        node.start()
        return node

    def stop(self) -> None:
        """Dead, as far as the others can tell; whoever kills somebody writes it down."""
        self.node.close()
        router = self.node.router
        mine = [row for row in self._rows if (row.process, row.incarnation) == (self.name, router.incarnation)]
        self._rows.append(
            Row(self.name, router.incarnation, len(mine), mine[-1].time, evidence.CRASH, conf=router.scribe.conf)
        )

    def restart(self) -> None:
        self.told.clear()
        self.said = 0
        self.node = self._made(KEY)

    def multicast(self, text: str) -> None:
        self.said += 1
        message = MessageId(self.name, self.node.router.incarnation, self.said)
        self.node.ask(Multicast(message, Service.SAFE, text.encode()))

    @property
    def members(self) -> tuple[ProcId, ...]:
        confs = [told.conf.members for told in self.told if isinstance(told, RegularConf)]
        return confs[-1] if confs else ()

    @property
    def delivered(self) -> list[str]:
        return [told.payload.decode() for told in self.told if isinstance(told, Deliver)]


def free_addresses(names: str) -> dict[ProcId, Address]:
    sockets = {name: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for name in names.split()}
    for each in sockets.values():
        each.bind(("127.0.0.1", 0))
    addresses = {name: each.getsockname() for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return addresses


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def run(tmp_path: Path, story: Callable[[dict[ProcId, Machine]], Any]) -> list[Row]:
    """Play it on three machines, and judge what they left."""
    rows: list[Row] = []

    async def play() -> None:
        addresses = free_addresses("p q r")
        machines = {name: Machine(name, addresses, tmp_path, rows) for name in addresses}
        try:
            await until(lambda: all(machine.members == ("p", "q", "r") for machine in machines.values()))
            await story(machines)
        finally:
            for machine in machines.values():
                machine.node.close()

    asyncio.run(play())
    assert Judge(("run", "evs")).broken(to_table([("nodes", rows)])) == []
    return rows


def test_three_nodes_become_a_ring_and_deliver_in_one_order(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        for number in range(20):
            for machine in machines.values():
                machine.multicast(f"{machine.name}{number}")
        await until(lambda: all(len(machine.delivered) == 60 for machine in machines.values()))
        assert len({tuple(machine.delivered) for machine in machines.values()}) == 1

    run(tmp_path, story)


@pytest.mark.slow
def test_a_node_that_stops_is_left_and_joins_again_from_its_log(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        machines["r"].stop()
        machines["p"].multicast("without r")
        await until(lambda: machines["q"].delivered == ["without r"])
        assert machines["q"].members == ("p", "q")
        machines["r"].restart()
        await until(lambda: all(machine.members == ("p", "q", "r") for machine in machines.values()))
        machines["r"].multicast("again")
        await until(lambda: machines["p"].delivered[-1] == "again")
        assert machines["r"].node.router.incarnation == 2

    run(tmp_path, story)


def test_garbage_and_strangers_are_refused_and_counted(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        target = machines["p"].node
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for number in range(50):
            stranger.sendto(bytes([number]) * 60, target._addresses["p"])
        stranger.close()
        await until(lambda: sum(target.refused.values()) >= 50)
        machines["q"].multicast("as if nothing had been")
        await until(lambda: machines["p"].delivered == ["as if nothing had been"])
        assert target.is_running

    run(tmp_path, story)
