"""The workload: clients who ask for everything that a cluster promises, some at one node for ever, some anywhere.

| kind | value | seen |
|---|---|---|
| `write`, `read`, `compare and set` | new; and old | what it holds; was it set, and what does it hold |
| `append`, `read list` | what is appended | the list after it |
| `insert`; `accept`, and later `green` | a row that nobody else inserts | |
| `transfer`; its key: interactive | its name, from, to, amount | |
| `total`; its key: how strict | | the sum of all accounts, and how many there are |
| `newest`; its key: how strict | | the highest row number of the inserts |
| `own`; its key: how strict | a row of this client's that was inserted or accepted | how many there are of it |
| `dirty rows` | a row number that was green where the client is | the rows above it, each with its number |
| `final ...`; its key: at which node | | everything, when all is well again |

Registers and lists have new keys every few seconds, so that what nobody knows the end of burdens the search only as
long. Times are of one clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from greenline.client import (
    Client,
    IntegrityError,
    OutcomeUnknown,
    Refused,
    Rows,
    SerializationFailure,
    TimedOut,
    Transaction,
    Written,
)
from tests.jepsen.history import Ended, Operation, Recorder

TIMEOUT_S = 3.0
KEYS_LAST_S = 3.0
KEYS = 3
"""At once, of each kind."""
ACCOUNTS = 6
BALANCE = 100
AGAIN = 20
"""So many rows that are green where a client is are looked at once more with what is dirty."""

SCHEMA = (
    "CREATE TABLE registers (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE lists (key TEXT PRIMARY KEY, items TEXT NOT NULL)",
    # Nothing in the table keeps a row from being there twice.
    "CREATE TABLE inserts (number INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE INDEX inserted ON inserts (value)",
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))",
    "CREATE TABLE transfers (name TEXT NOT NULL, payer INTEGER, payee INTEGER, amount INTEGER)",
)
WRITE = "INSERT INTO registers VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
SET = "UPDATE registers SET value = ? WHERE key = ? AND value = ?"
READ = "SELECT value FROM registers WHERE key = ?"
APPEND = (
    "INSERT INTO lists VALUES (?, ?) "
    "ON CONFLICT (key) DO UPDATE SET items = items || ' ' || excluded.items RETURNING items"
)
READ_LIST = "SELECT items FROM lists WHERE key = ?"
INSERT = "INSERT INTO inserts (value) VALUES (?)"
ABOVE = "SELECT number, value FROM inserts WHERE number > ? ORDER BY number"
PAY = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
NOTE = "INSERT INTO transfers VALUES (?, ?, ?, ?)"
TOTAL = "SELECT sum(balance), count(*) FROM accounts"
FINAL = {
    "inserts": "SELECT value FROM inserts ORDER BY number",
    "transfers": "SELECT name, payer, payee, amount FROM transfers ORDER BY rowid",
    "accounts": "SELECT id, balance FROM accounts ORDER BY id",
    "lists": "SELECT key, items FROM lists",
    "registers": "SELECT key, value FROM registers",
}


async def prepare(db: Client) -> None:
    for sql in SCHEMA:
        await db.execute(sql)
    await db.executemany("INSERT INTO accounts VALUES (?, ?)", [(number, BALANCE) for number in range(ACCOUNTS)])


class Actor:
    """One client: one thing after the other, and each is written down."""

    def __init__(self, name: str, db: Client, recorder: Recorder, seed: str, node: str = "") -> None:
        """`node`: it stays there."""
        self.name = name
        self.db = db
        self.node = node
        self.accepted: list[tuple[str, Written]] = []
        self._recorder = recorder
        self._chance = Random(f"{name} {seed}")
        self._asked = 0
        self._green = 0
        """A row number that was green where it was: for ever, where it stays."""

    async def act(self, until: float, deeds: Sequence[Callable[[Actor], Awaitable[None]]], pause_s: float) -> None:
        while time.monotonic() < until:
            await self._chance.choice(deeds)(self)
            await asyncio.sleep(self._chance.uniform(0, 2 * pause_s))

    # Registers and lists.

    async def write(self) -> None:
        key, value = self._key(), self._new()
        await self._ask("write", key, value, self.db.execute(WRITE, (key, value), **self._wishes()))

    async def read(self) -> None:
        key = self._key()
        await self._ask("read", key, None, self._query(READ, key), _one)

    async def compare_and_set(self) -> None:
        """What it believes it has read before: perhaps it is so no more."""
        key, new = self._key(), self._new()
        old = await self._ask("read", key, None, self._query(READ, key), _one)
        if old is not None:
            both = [(SET, (new, key, old)), (READ, (key,))]
            await self._ask("compare and set", key, [old, new], self.db.together(both, **self._wishes()), _was_set)

    async def append(self) -> None:
        key, value = self._key(), self._new()
        asking = self.db.execute(APPEND, (key, value), **self._wishes())
        await self._ask("append", key, value, asking, lambda written: written.rows[0][0].split())

    async def read_list(self) -> None:
        key = self._key()
        await self._ask("read list", key, None, self._query(READ_LIST, key), lambda rows: (_one(rows) or "").split())

    # Rows that nobody else inserts.

    async def insert(self) -> None:
        value = self._new()
        if await self._ask("insert", "", value, self.db.execute(INSERT, (value,), **self._wishes()), _done):
            await self._ask("own", "session", value, self._count(value, "session"), _one)

    async def insert_in_vain(self) -> None:
        """The second statement fails, so the first has not happened."""
        value = self._new()
        both = [(INSERT, (value,)), ("INSERT INTO accounts VALUES (0, 0)", ())]
        await self._ask("insert", "", value, self.db.together(both, **self._wishes()), _done)

    async def accept(self) -> None:
        value = self._new()
        asking = self.db.execute(INSERT, (value,), wait="accepted", timeout=TIMEOUT_S)
        written = await self._ask("accept", "", value, asking, lambda written: written, is_told=False)
        if written is not None:
            self.accepted.append((value, written))
            if self.node:
                # It is seen as soon as it is accepted here, and from then on for ever.
                value, _ = self._chance.choice(self.accepted[-5:])
                await self._ask("own", "dirty", value, self._count(value, "dirty"), _one)

    async def wait_for_accepted(self, until: float) -> None:
        """In the end: what became of all that was only accepted."""
        for value, written in self.accepted:
            asking = asyncio.wait_for(written.green(), max(0.001, until - time.monotonic()))
            await self._ask("green", "", value, asking, _done)

    # Money.

    async def transfer(self) -> None:
        name, payer, payee, amount = self._transfer()
        three = [(PAY, (-amount, payer)), (PAY, (amount, payee)), (NOTE, (name, payer, payee, amount))]
        await self._ask("transfer", "", [name, payer, payee, amount], self.db.together(three, **self._wishes()), _done)

    async def transfer_interactively(self) -> None:
        """Looks whether there is enough, then decides."""
        name, payer, payee, amount = self._transfer()

        async def transaction() -> bool:
            async with self.db.transaction(timeout=TIMEOUT_S) as tx:
                return await _pay(tx, name, payer, payee, amount)

        await self._ask("transfer", "interactive", [name, payer, payee, amount], transaction(), bool)

    # What others see.

    async def look(self) -> None:
        """At the accounts and the inserts, in any of the ways."""
        consistency = self._chance.choice(("weak", "session", "dirty", "strict"))
        await self._ask(
            "total", consistency, None, self._query(TOTAL, consistency=consistency), lambda rows: list(rows.rows[0])
        )

    async def look_at_newest(self) -> None:
        consistency = self._chance.choice(("weak", "session", "strict"))
        asking = self._query("SELECT max(number) FROM inserts", consistency=consistency)
        number = await self._ask("newest", consistency, None, asking, lambda rows: _one(rows) or 0)
        self._green = max(self._green, number or 0)

    async def look_dirty(self) -> None:
        floor = max(0, self._green - AGAIN)
        asking = self._query(ABOVE, floor, consistency="dirty")
        await self._ask("dirty rows", "dirty", floor, asking, lambda rows: [list(row) for row in rows])

    async def look_in_the_end(self, timeout: float) -> None:
        """At everything."""
        for what, sql in FINAL.items():
            asking = self.db.query(sql, timeout=timeout)
            found = await self._ask(f"final {what}", self.node, None, asking, lambda rows: [list(row) for row in rows])
            assert found is not None, f"{self.node} does not answer although all is well: {sql}"

    # How.

    async def _ask(
        self,
        kind: str,
        key: str,
        value: Any,
        asking: Awaitable[Any],
        told: Callable[[Any], Any] = lambda _: None,
        *,
        is_told: bool = True,
    ) -> Any:
        """What came back, if it did; all else is written down."""
        called = time.monotonic()
        ended, found, why = Ended.OK, None, ""
        try:
            found = told(await asking)
        except TimedOut as late:
            ended, why = Ended.UNKNOWN if late.handle is not None else Ended.FAIL, "timed out"
        except (OutcomeUnknown, TimeoutError) as error:
            ended, why = Ended.UNKNOWN, str(error)
        except (IntegrityError, SerializationFailure, Refused) as error:
            ended, why = Ended.FAIL, f"{type(error).__name__}: {error}"
        seen = found if is_told else None
        returned = time.monotonic()
        self._recorder.add(Operation(self.name, kind, key, called, returned, ended, value, seen, self.node, why))
        return found

    def _query(self, sql: str, *parameters: Any, consistency: str = "strict") -> Awaitable[Rows]:
        return self.db.query(sql, parameters, consistency=consistency, timeout=TIMEOUT_S)

    def _count(self, value: str, consistency: str) -> Awaitable[Rows]:
        return self._query("SELECT count(*) FROM inserts WHERE value = ?", value, consistency=consistency)

    def _wishes(self) -> Any:
        return {"level": self._chance.choice(("local", "local", "quorum")), "timeout": TIMEOUT_S}

    def _key(self) -> str:
        return f"{int(time.monotonic() / KEYS_LAST_S)}.{self._chance.randrange(KEYS)}"

    def _new(self) -> str:
        self._asked += 1
        return f"{self.name}.{self._asked}"

    def _transfer(self) -> tuple[str, int, int, int]:
        payer, payee = self._chance.sample(range(ACCOUNTS), 2)
        return self._new(), payer, payee, self._chance.randint(1, BALANCE // 2)


async def _pay(tx: Transaction, name: str, payer: int, payee: int, amount: int) -> bool:
    """False: there is not enough."""
    balance = (await tx.execute("SELECT balance FROM accounts WHERE id = ?", (payer,))).rows[0][0]
    if balance < amount:
        return False
    await tx.execute("UPDATE accounts SET balance = ? WHERE id = ?", (balance - amount, payer))
    await tx.execute(PAY, (amount, payee))
    await tx.execute(NOTE, (name, payer, payee, amount))
    return True


def _one(rows: Rows) -> Any:
    return rows.rows[0][0] if rows.rows else None


def _done(_: Written) -> bool:
    return True


def _was_set(written: Written) -> list[Any]:
    was_set, now = written.results
    return [bool(was_set.changes), now.rows[0][0] if now.rows else None]


WAITING = [
    Actor.write, Actor.read, Actor.compare_and_set, Actor.append, Actor.read_list, Actor.insert, Actor.insert_in_vain,
    Actor.transfer, Actor.transfer_interactively,
]  # fmt: skip
"""What needs a primary component."""
AT_ONCE = [Actor.accept, Actor.look, Actor.look_at_newest, Actor.look_dirty]
"""What is to be had anywhere."""
