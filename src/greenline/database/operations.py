"""Operations: small deterministic statements, written as text, over lists, registers and accounts.

| operation          | what it does                                  | its outcome            |
|--------------------|-----------------------------------------------|------------------------|
| `append l1 7`      | adds 7 to the end of the list `l1`            | `l1 3 7`: the list now |
| `read l1`          |                                               | `l1 3 7`               |
| `write r1 9`       | the register `r1` holds 9                     | `r1 9`                 |
| `read r1`          |                                               | `r1 9`, or `r1 -`      |
| `transfer a1 a2 5` | 5 from one account to another, if it has them | `ok`, or `refused`     |
| `total`            | the sum of all accounts                       | `total 300`            |

Lists and registers exist once they are named, accounts from the beginning.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable

ACCOUNTS = ("a1", "a2", "a3")
INITIAL_BALANCE = 100
OK = "ok"
REFUSED = "refused"
NO_OPERATION = "no such operation"

SCHEMA = f"""
CREATE TABLE lists (name TEXT NOT NULL, place INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (name, place));
CREATE TABLE registers (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
INSERT INTO accounts VALUES {", ".join(f"('{name}', {INITIAL_BALANCE})" for name in ACCOUNTS)};
"""
CONTENTS = (
    "SELECT name, place, value FROM lists ORDER BY name, place",
    "SELECT name, value FROM registers ORDER BY name",
    "SELECT name, balance FROM accounts ORDER BY name",
)
"""What there is to compare between replicas."""


class Fails(Exception):
    """The operation fails, and changes nothing; the message is its outcome."""


def carry_out(db: sqlite3.Connection, body: bytes) -> str:
    """The outcome of one operation. It raises `Fails` or `sqlite3.IntegrityError` where it must be undone."""
    text = body.decode(errors="replace")
    for pattern, do in _OPERATIONS:
        if found := re.fullmatch(pattern, text):
            return do(db, *found.groups())
    raise Fails(NO_OPERATION)


def _append(db: sqlite3.Connection, name: str, value: str) -> str:
    db.execute(
        "INSERT INTO lists SELECT ?1, 1 + coalesce(max(place), 0), ?2 FROM lists WHERE name = ?1", (name, int(value))
    )
    return _read_list(db, name)


def _read_list(db: sqlite3.Connection, name: str) -> str:
    values = db.execute("SELECT value FROM lists WHERE name = ? ORDER BY place", (name,))
    return " ".join([name, *(str(value) for (value,) in values)])


def _write(db: sqlite3.Connection, name: str, value: str) -> str:
    db.execute("INSERT OR REPLACE INTO registers VALUES (?, ?)", (name, int(value)))
    return _read_register(db, name)


def _read_register(db: sqlite3.Connection, name: str) -> str:
    row = db.execute("SELECT value FROM registers WHERE name = ?", (name,)).fetchone()
    return f"{name} {'-' if row is None else row[0]}"


def _transfer(db: sqlite3.Connection, source: str, target: str, amount: str) -> str:
    """An overdraft breaks a constraint of the table."""
    for name, change in ((source, -int(amount)), (target, int(amount))):
        if not db.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (change, name)).rowcount:
            raise Fails(REFUSED)
    return OK


def _total(db: sqlite3.Connection) -> str:
    (total,) = db.execute("SELECT sum(balance) FROM accounts").fetchone()
    return f"total {total}"


_NUMBER = r"(\d{1,15})"
_OPERATIONS: tuple[tuple[str, Callable[..., str]], ...] = (
    (rf"append (l\d+) {_NUMBER}", _append),
    (r"read (l\d+)", _read_list),
    (rf"write (r\d+) {_NUMBER}", _write),
    (r"read (r\d+)", _read_register),
    (rf"transfer (a\d+) (a\d+) {_NUMBER}", _transfer),
    (r"total", _total),
)
