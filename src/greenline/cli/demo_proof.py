"""The demo's proof: the money is all there, the replicas are equal, every transfer happened once, no rule is broken.

Each part is a question to the cluster and a judgement of the answers, so that the judgement can be tried on answers
that are wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from greenline.access import wire
from greenline.cli.demo_bank import ACCOUNTS, EACH, TOTAL, Bank, End, Transfer
from greenline.cli.demo_watch import Watch
from greenline.client import Client
from greenline.kernel.identities import ProcId
from greenline.pipeline.audit import Verdict, of_table

_SHOWN = 3


@dataclass(frozen=True)
class Part:
    """One thing that is to be proven, what was found, and what speaks against it."""

    name: str
    found: str
    against: list[str] = field(default_factory=list)
    is_open: bool = False
    """Neither proven nor disproven."""

    def lines(self) -> list[str]:
        more = [f"and {len(self.against) - _SHOWN} more"] if len(self.against) > _SHOWN else []
        against = [f"          because {each}" for each in [*self.against[:_SHOWN], *more]]
        verdict = "open" if self.is_open else "FAIL" if self.against else "ok"
        return [f"{verdict:<6}{self.name:<9}{self.found}", *against]


@dataclass(frozen=True)
class Entry:
    """A row of the ledger."""

    client: str
    number: int
    source: int
    target: int
    amount: int


@dataclass(frozen=True)
class Books:
    """What a strict read finds at one replica."""

    balances: dict[int, int]
    entries: list[Entry]

    @property
    def total(self) -> int:
        return sum(self.balances.values())


async def books_at(name: ProcId, db: Client, bank: Bank) -> Books:
    balances, entries = "SELECT id, balance FROM account", "SELECT client, number, source, target, amount FROM ledger"
    bank.witness.ask_total(name)
    rows = await db.query(balances)
    books = Books(dict(rows.rows), [Entry(*row) for row in await db.query(entries)])
    bank.witness.total(name, rows.position, books.total)
    return books


def sums(books: dict[ProcId, Books], watch: Watch) -> Part:
    against = [f"{name} has {each.total:,}" for name, each in books.items() if each.total != TOTAL]
    found = "   ".join(f"{name} {each.total:,}" for name, each in books.items())
    return Part("sums", f"{found}; and in {watch.reads:,} weak and dirty reads", [*against, *watch.wrong])


def digests(stands: dict[ProcId, wire.Stands]) -> Part:
    found = {name: f"{each.state.hex()[:8]} at {each.position:,}" for name, each in stands.items()}
    whole = {(each.position, each.order, each.state) for each in stands.values()}
    if len(whole) == 1:
        return Part("digests", f"order and state at {' '.join(found)}: {next(iter(found.values()))}")
    return Part("digests", "they differ", [f"{name} has {each}" for name, each in found.items()])


def once(books: dict[ProcId, Books], transfers: Iterable[Transfer]) -> Part:
    """What was told to be done is in every ledger, once, and nothing else; and the balances are what they make."""
    transfers = list(transfers)
    against = [
        f"{each.teller} was not told of its transfer {each.number}" for each in transfers if each.end is End.OPEN
    ]
    against += [f"{each.teller}'s {each.number}: {each.because}" for each in transfers if each.end is End.FAILED]
    told = {(each.teller, each.number): each for each in transfers if each.end is End.DONE}
    for name, each in books.items():
        against += _against_ledger(name, each.entries, told)
        against += _against_balances(name, each)
    refused, red = (sum(each.end is End.NO_MONEY for each in transfers), sum(each.was_red for each in transfers))
    found = f"{len(told):,} transfers done, {refused:,} without the money, {red:,} of all red for long"
    return Part("once", found, against)


def _against_ledger(name: ProcId, entries: list[Entry], told: dict[tuple[str, int], Transfer]) -> list[str]:
    there = Counter((entry.client, entry.number) for entry in entries)
    against = [
        f"{name} has {client}'s {number} {times} times" for (client, number), times in there.items() if times > 1
    ]
    against += [f"{name} lacks {client}'s {number}" for client, number in told.keys() - there.keys()]
    against += [f"{name} has {client}'s {number}, not done" for client, number in there.keys() - told.keys()]
    return against


def _against_balances(name: ProcId, books: Books) -> list[str]:
    due = dict.fromkeys(range(1, ACCOUNTS + 1), EACH)
    for entry in books.entries:
        due[entry.source] -= entry.amount
        due[entry.target] += entry.amount
    return [
        f"account {account} has {books.balances.get(account)} at {name}, and by its ledger {balance}"
        for account, balance in due.items()
        if books.balances.get(account) != balance
    ]


async def audit(trace: pa.Table) -> Part:
    begun = time.monotonic()
    verdicts = await asyncio.to_thread(_judged, trace)
    found = f"{trace.num_rows:,} rows, {len(verdicts)} rules, {time.monotonic() - begun:.1f} s"
    broken = [str(witness) for each in verdicts for witness in each.broken]
    return Part("audit", f"{found}: {'rules are broken' if broken else 'every rule holds'}", broken)


def _judged(trace: pa.Table) -> list[Verdict]:
    with of_table(trace, "the demo's trace") as judge:
        return judge.judge().verdicts
