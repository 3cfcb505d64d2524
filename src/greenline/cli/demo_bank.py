"""The demo's bank: accounts, a ledger, and tellers who transfer money all the time.

A transfer is one action: two accounts and a row of the ledger change together, or nothing does. A teller goes on when
its transfer is accepted and does not become green soon, so tellers work on either side of a partition.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from enum import StrEnum

from greenline.cli.demo_evidence import Witness
from greenline.client import Client, DatabaseError, Written
from greenline.client.answers import written_by
from greenline.client.asked import Identity
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId

ACCOUNTS = 12
EACH = 100
TOTAL = ACCOUNTS * EACH
LARGEST = 60
PAUSE_S = 0.25
"""Of a teller, between two transfers."""
PATIENCE_S = 0.4
"""So long a teller waits for green; then it serves the next customer."""

SCHEMA = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))",
    """CREATE TABLE ledger (client TEXT, number INTEGER, source INTEGER, target INTEGER, amount INTEGER,
                            UNIQUE (client, number))""",
)


class End(StrEnum):
    OPEN = "open"
    DONE = "done"
    NO_MONEY = "no money"
    FAILED = "failed"
    """For a reason that no transfer should have."""


@dataclass
class Transfer:
    """As its teller knows it."""

    teller: str
    number: int
    source: int
    target: int
    amount: int
    identity: Identity | None = None
    was_red: bool = False
    """It was accepted, and not ordered soon."""
    end: End = End.OPEN
    because: str = ""

    def __str__(self) -> str:
        return f"transfer {self.source} {self.target} {self.amount}"


class Bank:
    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.transfers: list[Transfer] = []
        self.tellers: list[Teller] = []
        self.is_open = True
        self._unfinished: set[asyncio.Task[None]] = set()

    async def found(self, db: Client) -> None:
        accounts = [("INSERT INTO account VALUES (?, ?)", (number, EACH)) for number in range(1, ACCOUNTS + 1)]
        for statements in ([(SCHEMA[0], ())], [(SCHEMA[1], ())], accounts):
            call = self.witness.call("found", "p")
            written = await db.together(statements)
            self.witness.name(call, written.identity)
            self.witness.decided(written, "p")

    def draw(self, teller: Teller) -> Transfer:
        source, target = random.sample(range(1, ACCOUNTS + 1), 2)
        transfer = Transfer(teller.name, teller.drawn, source, target, random.randint(1, LARGEST))
        self.transfers.append(transfer)
        return transfer

    def of(self, home: ProcId) -> list[Teller]:
        return [teller for teller in self.tellers if teller.home == home]

    def count(self, end: End) -> int:
        return sum(transfer.end is end for transfer in self.transfers)

    def finish_later(self, finishing: asyncio.Task[None]) -> None:
        self._unfinished.add(finishing)
        finishing.add_done_callback(self._unfinished.discard)

    async def close(self) -> None:
        """No new transfers; then until each has its answer."""
        self.is_open = False
        await asyncio.gather(*(teller.goes_home() for teller in self.tellers))
        while self._unfinished:
            await asyncio.gather(*self._unfinished)


class Teller:
    def __init__(self, bank: Bank, name: str, home: ProcId, db: Client) -> None:
        self.name = name
        self.home = home
        self.db = db
        self.drawn = 0
        self._bank = bank
        self._work = asyncio.create_task(self._serve())
        bank.tellers.append(self)

    @property
    def place(self) -> ProcId:
        """The replica that served it last."""
        return self.db.component.server if self.db.component is not None else self.home

    async def goes_home(self) -> None:
        await self._work

    async def _serve(self) -> None:
        while self._bank.is_open:
            await self._transfer()
            await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE_S)

    async def _transfer(self) -> None:
        self.drawn += 1
        transfer = self._bank.draw(self)
        call = self._bank.witness.call(str(transfer), self.place)
        try:
            written = await self.db.together(_statements(transfer), wait="accepted")
        except DatabaseError as error:
            # It was decided at once.
            if error.identity is not None:
                self._bank.witness.name(call, error.identity)
            _end(transfer, error)
            return
        finishing = asyncio.create_task(self._finish(transfer, call, written))
        self._bank.finish_later(finishing)
        done, _ = await asyncio.wait({finishing}, timeout=PATIENCE_S)
        transfer.was_red = not done

    async def _finish(self, transfer: Transfer, call: Row, written: Written) -> None:
        transfer.identity = written.identity
        self._bank.witness.name(call, written.identity)
        if written.asked is not None:
            self._bank.witness.accepted(written.identity, self.place)
            await written.asked.until_green()
            (written,) = written_by(written.asked)
        self._bank.witness.decided(written, self.place)
        _end(transfer, written.error)


def _statements(transfer: Transfer) -> list[tuple[str, tuple[str | int, ...]]]:
    who = (transfer.teller, transfer.number, transfer.source, transfer.target, transfer.amount)
    return [
        ("UPDATE account SET balance = balance - ? WHERE id = ?", (transfer.amount, transfer.source)),
        ("UPDATE account SET balance = balance + ? WHERE id = ?", (transfer.amount, transfer.target)),
        ("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", who),
    ]


def _end(transfer: Transfer, error: Exception | None) -> None:
    if error is None:
        transfer.end = End.DONE
    else:
        transfer.end = End.NO_MONEY if "CHECK" in str(error) else End.FAILED
        transfer.because = str(error)
