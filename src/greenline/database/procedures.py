"""Procedures: what an active action calls by name. All replicas must run the same version of it at the same place.

A procedure is SQL, and so the same for everybody who has the same text; its digest says which text that is. Which
version is active is ordered like everything else, and stands in a table of the replicated database. A replica that is
asked for an active version it does not have cannot go on: to skip the call would be another order.
"""

from __future__ import annotations

import re
import sqlite3
from hashlib import blake2b

import msgspec

from greenline.kernel.actions import DIGEST_BYTES
from greenline.kernel.database import Activate

SCHEMA = """
CREATE TABLE procedures (name TEXT PRIMARY KEY, version INTEGER NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
"""
TABLES = {"procedures": 1}


class Procedure(msgspec.Struct, frozen=True):
    """Statements that run one after the other; each must change something, else the call fails and nothing changes."""

    name: str
    version: int
    arguments: str
    """A regular expression that the text after the name must match; its named groups are parameters of the code."""
    code: tuple[str, ...]

    @property
    def digest(self) -> bytes:
        source = "\0".join((self.name, str(self.version), self.arguments, *self.code))
        return blake2b(source.encode(), digest_size=DIGEST_BYTES).digest()

    def parameters(self, text: str) -> dict[str, str | int] | None:
        found = re.fullmatch(self.arguments, text, re.ASCII)
        return found and {name: int(said) if said.isdecimal() else said for name, said in found.groupdict().items()}


class Lacking(Exception):
    """This replica has no such procedure, and may not go on without."""


class Procedures:
    """Those that a replica has, and the table of those that are active."""

    def __init__(self, db: sqlite3.Connection, known: tuple[Procedure, ...]) -> None:
        self._db = db
        self._known = {(each.name, each.version, each.digest): each for each in known}

    def activate(self, order: Activate) -> None:
        row = (order.name, order.version, order.digest)
        self._db.execute("INSERT OR REPLACE INTO procedures VALUES (?, ?, ?)", row)

    def active(self, name: str) -> Procedure | None:
        row = self._db.execute("SELECT version, digest FROM procedures WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        version, digest = row
        if (name, version, digest) not in self._known:
            raise Lacking(f"version {version} of {name} ({digest.hex()[:8]}) is called, and not known here")
        return self._known[name, version, digest]


_DEPOSIT = (
    "UPDATE accounts SET balance = balance - :amount WHERE name = 'a3'",
    "UPDATE accounts SET balance = balance + :amount WHERE name = :account",
)
_BOOK = "INSERT INTO lists SELECT 'l9', 1 + coalesce(max(place), 0), :amount FROM lists WHERE name = 'l9'"
_ACCOUNT_AND_AMOUNT = r"(?P<account>a\d+) (?P<amount>\d{1,15})"

PROCEDURES = (
    Procedure("deposit", 1, _ACCOUNT_AND_AMOUNT, _DEPOSIT),
    Procedure("deposit", 2, _ACCOUNT_AND_AMOUNT, (*_DEPOSIT, _BOOK)),
)
"""`call deposit a1 5`: from the bank's account, `a3`. The second version books it in the list `l9`."""
