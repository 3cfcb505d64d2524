"""Who watches the demo's replicas: a few times a second, where each stands, and what reads show there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from greenline.cli import cluster
from greenline.cli.demo_bank import TOTAL
from greenline.cli.local import Local
from greenline.client import Client, Error
from greenline.kernel.identities import ProcId
from greenline.node.status import Status
from greenline.replication.standing import Standing

LOOKS_EVERY_S = 0.3
_TIMEOUT_S = 1.0
_MONEY = "SELECT (SELECT sum(balance) FROM account), (SELECT count(*) FROM ledger)"


class Stuck(Exception):
    """It has not happened in time."""


@dataclass(frozen=True)
class Seen:
    """What a read shows: all the money, and the transfers that made it so."""

    money: int
    transfers: int

    def __str__(self) -> str:
        return f"{self.money:,} after {self.transfers}"


@dataclass(frozen=True)
class Look:
    """One replica at one time."""

    standing: Standing | None = None
    """None: it does not answer."""
    weak: Seen | None = None
    dirty: Seen | None = None

    def is_in_primary(self, *members: ProcId) -> bool:
        stands = self.standing
        return stands is not None and stands.is_primary and stands.prim is not None and stands.prim.servers == members


class Watch:
    def __init__(self, local: Local) -> None:
        self.looks: dict[ProcId, Look] = dict.fromkeys(local.names, Look())
        self.reads = 0
        self.wrong: list[str] = []
        """Reads in which money was lost, or made."""
        self._admins = {name: config.admins[name] for name, config in local.configs.items()}
        self._clients: dict[ProcId, Client] = {}

    def read_at(self, clients: dict[ProcId, Client]) -> None:
        """From now on: the bank is there."""
        self._clients = clients

    async def run(self) -> None:
        while True:
            self.looks = await self._look()
            await asyncio.sleep(LOOKS_EVERY_S)

    async def _look(self) -> dict[ProcId, Look]:
        found = await asyncio.to_thread(cluster.statuses, self._admins)
        up = {name: each.standing for name, each in found.items() if isinstance(each, Status)}
        looks = await asyncio.gather(*(self._look_at(name, up.get(name)) for name in found))
        return dict(zip(found, looks, strict=True))

    async def _look_at(self, name: ProcId, standing: Standing | None) -> Look:
        if standing is None or name not in self._clients:
            return Look(standing)
        return Look(standing, await self._read(name, "weak"), await self._read(name, "dirty"))

    async def _read(self, name: ProcId, consistency: str) -> Seen | None:
        try:
            rows = await self._clients[name].query(_MONEY, consistency=consistency, timeout=_TIMEOUT_S)
        except Error:
            return None  # it has just died, or is not up yet
        seen = Seen(*rows.rows[0])
        self.reads += 1
        if seen.money != TOTAL:
            self.wrong.append(f"a {consistency} read at {name} found {seen}")
        return seen

    async def next(self) -> dict[ProcId, Look]:
        """What is seen when it is looked at again."""
        before = self.looks
        await self.until("the replicas are looked at", lambda looks: looks is not before)
        return self.looks

    async def until(self, what: str, condition: Callable[[dict[ProcId, Look]], bool], patience: float = 60.0) -> None:
        try:
            async with asyncio.timeout(patience):
                while not condition(self.looks):
                    await asyncio.sleep(LOOKS_EVERY_S / 3)
        except TimeoutError:
            stands = "; ".join(f"{name}: {_in_words(look)}" for name, look in self.looks.items())
            raise Stuck(f"after {patience:g} s it is not so that {what}. {stands}") from None


def _in_words(look: Look) -> str:
    stands = look.standing
    return "down" if stands is None else f"{stands.state} with {' '.join(stands.here)}, {stands.because or 'well'}"
