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
from greenline.kernel.orders import Tell
from greenline.kernel.ports import Deliver, Multicast, RegularConf, Service
from greenline.kernel.router import Layer
from greenline.node.acquaintance import Acquaintance
from greenline.node.driver import Node
from greenline.node.fitting import fit
from greenline.node.log import Log
from greenline.node.sealing import KEY_BYTES, Keyring
from greenline.node.transport import Address, Link
from greenline.ring.core import RingCore
from greenline.ring.messages import AnyMessage, Ceiling, RegularToken
from greenline.spec.judge import Judge
from greenline.trace.tables import to_table
from tests.kernel.tally import Tally, tally_layer

RING_OF_KEYS = Keyring({1: b"k" * KEY_BYTES}, 1)
PATIENCE_S = 20.0


class Machine:
    """One node with its place on the network and on disk, and what its application was told."""

    def __init__(
        self, name: ProcId, addresses: dict[ProcId, Address], place: Path, rows: list[Row], link: Link
    ) -> None:
        self.name = name
        self.told: list[Any] = []
        self.said = 0
        self.addresses = addresses
        self._place = place
        self._rows = rows
        self._link = link
        self.node = self._made()

    def _made(self) -> Node:
        settings = fit({}, self.name, self.addresses, self._link)
        layers = [Layer("ring", 1, RingCore(settings), AnyMessage, Ceiling, (RegularToken,))]
        node = Node(
            self.name,
            self.addresses,
            layers,
            Log(self._place / f"{self.name}.log"),
            RING_OF_KEYS,
            acquaintance=Acquaintance(self._place / f"{self.name}.acquaintance", self.name),
            link=self._link,
            tell=self.told.append,
            trace=self._rows.append,
        )
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
        self.node = self._made()

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


def free_addresses(names: str, host: str = "127.0.0.1") -> dict[ProcId, Address]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets = {name: socket.socket(family, socket.SOCK_DGRAM) for name in names.split()}
    for each in sockets.values():
        each.bind((host, 0))
    addresses = {name: each.getsockname()[:2] for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return addresses


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def run(
    tmp_path: Path,
    story: Callable[[dict[ProcId, Machine]], Any],
    host: str = "127.0.0.1",
    group: str | None = None,
) -> list[Row]:
    """Play it on three machines, and judge what they left. (Loopback has no IPv6 multicast.)"""
    rows: list[Row] = []

    async def play() -> None:
        addresses = free_addresses("p q r", host)
        port = free_addresses("group", host)["group"][1]
        link = Link() if group is None else Link(multicast=(group, port), interface="lo")
        machines = {name: Machine(name, addresses, tmp_path, rows, link) for name in addresses}
        try:
            await until(lambda: all(machine.members == ("p", "q", "r") for machine in machines.values()))
            await story(machines)
        finally:
            for machine in machines.values():
                machine.node.close()

    asyncio.run(play())
    assert Judge(("run", "evs")).broken(to_table([("nodes", rows)])) == []
    return rows


@pytest.mark.parametrize(
    ("host", "group"),
    [("127.0.0.1", None), ("::1", None), ("127.0.0.1", "239.77.0.1")],
    ids=["IPv4", "IPv6", "IPv4 multicast"],
)
def test_three_nodes_become_a_ring_and_deliver_in_one_order(tmp_path: Path, host: str, group: str | None) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        for number in range(20):
            for machine in machines.values():
                machine.multicast(f"{machine.name}{number}")
        await until(lambda: all(len(machine.delivered) == 60 for machine in machines.values()))
        assert len({tuple(machine.delivered) for machine in machines.values()}) == 1
        machines["p"].multicast("large " * 100_000)
        await until(lambda: all(len(machine.delivered) == 61 for machine in machines.values()))

    run(tmp_path, story, host, group)


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


def test_what_comes_of_an_order_waits_behind_those_before_it(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        node = machines["p"].node
        told: list[str] = []

        def tell(payload: Any) -> None:
            told.append(payload)
            if payload == "1":
                node._perform([Tell("answer to 1")])

        before, node._tell = node._tell, tell
        node._perform([Tell("1"), Tell("2"), Tell("3")])
        node._tell = before
        assert told == ["1", "2", "3", "answer to 1"]

    run(tmp_path, story)


def test_an_application_that_fails_stops_its_node_with_a_reason(tmp_path: Path) -> None:
    async def story(machines: dict[ProcId, Machine]) -> None:
        def fail(_: Any) -> None:
            raise ValueError("no more")

        machines["r"].node._tell = fail
        machines["p"].multicast("x")
        await until(lambda: machines["r"].node.stopped is not None)
        assert machines["r"].node.stopped == "what was ordered could not be done: ValueError: no more"
        await until(lambda: machines["p"].members == ("p", "q"))

    run(tmp_path, story)


def test_a_node_whose_topmost_core_makes_checkpoints_has_a_short_log_and_its_ring_loses_nothing(tmp_path: Path) -> None:
    """Lives over one directory. The ring's counter must rise from life to life, though all that it wrote is gone."""
    confs: list[Any] = []

    async def live(addresses: dict[ProcId, Address], begins_at: int) -> None:
        tally, ring = Tally(every=10, ballast=b"x" * 100), RingCore(fit({}, "p", addresses, Link()))
        below = Layer("ring", 2, ring, AnyMessage, Ceiling, (RegularToken,), only_last_record=True)
        told: list[Any] = []
        acquaintance = Acquaintance(tmp_path / "acquaintance", "p")
        log = Log(tmp_path / "log", segment_bytes=4096)
        layers = [tally_layer(tally), below]
        node = Node("p", addresses, layers, log, RING_OF_KEYS, acquaintance=acquaintance, tell=told.append)
        node.start()
        await until(lambda: any(isinstance(each, RegularConf) for each in told))
        assert tally.number == begins_at
        for number in range(begins_at, begins_at + 100, 5):
            for _ in range(5):  # they share a batch, and a checkpoint is in every second one
                node.ask("count")
            await until(lambda: ("counted", number + 5) in told)  # noqa: B023
        confs.extend(each.conf.conf_id for each in told if isinstance(each, RegularConf))
        assert node.stopped is None
        node.close()

    for life in range(3):
        asyncio.run(live(free_addresses("p"), 100 * life))
        left = sorted(int(path.stem) for path in (tmp_path / "log").glob("*.segment"))
        assert left[-1] > 3 * (life + 1), "so many were begun"
        assert len(left) <= 3, "and the first ones are gone"
    assert confs == sorted(set(confs))


def test_a_node_that_cannot_discard_its_log_stops_and_says_why(tmp_path: Path) -> None:
    async def live() -> None:
        addresses = free_addresses("p")
        acquaintance = Acquaintance(tmp_path / "acquaintance", "p")
        log = Log(tmp_path / "log", segment_bytes=4096)
        layers = [tally_layer(Tally(every=10, ballast=b"x" * 1000))]
        node = Node("p", addresses, layers, log, RING_OF_KEYS, acquaintance=acquaintance)
        node.start()
        await until(lambda: node.is_running)
        for _ in range(9):
            node.ask("count")
            await until(lambda: not node.router._forcing)
        (tmp_path / "log" / "0000000001.segment").unlink()
        node.ask("count")
        await until(lambda: node.stopped is not None)
        assert str(node.stopped).startswith("the disk failed: ")
        assert "0000000001.segment: No such file or directory" in str(node.stopped)
        node.close()

    asyncio.run(live())
