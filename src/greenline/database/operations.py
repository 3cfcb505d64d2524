"""Operations: small deterministic statements, written as text, over lists, registers, accounts and counters.

| operation          | what it does                                      | its outcome            |
|--------------------|---------------------------------------------------|------------------------|
| `append l1 7`      | adds 7 to the end of the list `l1`                | `l1 3 7`: the list now |
| `read l1`          |                                                   | `l1 3 7`               |
| `write r1 9`       | the register `r1` holds 9                         | `r1 9`                 |
| `read r1`          |                                                   | `r1 9`, or `r1 -`      |
| `transfer a1 a2 5` | 5 from one account to another, if it has them     | `ok`, or `refused`     |
| `total`            | the sum of all accounts                           | `total 300`            |
| `add c1 5`         | the counter `c1` is 5 more                        | `ok`                   |
| `count c1`         |                                                   | `c1 12`                |
| `put t1 17 9`      | `t1` holds 9, unless it was put at a later time   | `ok`                   |
| `get t1`           |                                                   | `t1 9`, or `t1 -`      |
| `call deposit ...` | whatever the active version of the procedure does | `ok`, or `refused`     |

Accounts exist from the beginning, all else once it is named. `add` and `put` come to the same in any order,
so they may be relaxed: of two puts at the same time the one of the greater session and number is the later.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from greenline.database.procedures import Procedures
from greenline.kernel.actions import Action

ACCOUNTS = ("a1", "a2", "a3")
INITIAL_BALANCE = 100
OK = "ok"
REFUSED = "refused"
NO_OPERATION = "no such operation"
NO_PROCEDURE = "no such procedure is active"

SCHEMA = f"""
CREATE TABLE lists (name TEXT NOT NULL, place INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (name, place));
CREATE TABLE registers (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE timed (
    name TEXT PRIMARY KEY, time INTEGER NOT NULL, session TEXT NOT NULL, number INTEGER NOT NULL, value INTEGER NOT NULL
);
INSERT INTO accounts VALUES {", ".join(f"('{name}', {INITIAL_BALANCE})" for name in ACCOUNTS)};
"""
TABLES = {"lists": 2, "registers": 1, "accounts": 1, "counters": 1, "timed": 1}
"""With the number of columns, the first ones, that are the key."""


class Fails(Exception):
    """The operation fails, and changes nothing; the message is its outcome."""


class Run(NamedTuple):
    """What an operation works with."""

    db: sqlite3.Connection
    procedures: Procedures
    action: Action


def carry_out(run: Run) -> str:
    """The outcome of one operation. It raises `Fails` or `sqlite3.IntegrityError` where it must be undone."""
    text = run.action.body.decode(errors="replace")
    for operation in _OPERATIONS.get(text.partition(" ")[0], ()):
        if found := operation.pattern.fullmatch(text):
            return operation.do(run, *found.groups())
    raise Fails(NO_OPERATION)


def may_be_relaxed(action: Action) -> bool:
    """Does it come to the same wherever it is ordered?"""
    return action.body.partition(b" ")[0] in _RELAXABLE and not action.reads


def _append(run: Run, name: str, value: str) -> str:
    run.db.execute(
        "INSERT INTO lists SELECT ?1, 1 + coalesce(max(place), 0), ?2 FROM lists WHERE name = ?1", (name, int(value))
    )
    return _read_list(run, name)


def _read_list(run: Run, name: str) -> str:
    values = run.db.execute("SELECT value FROM lists WHERE name = ? ORDER BY place", (name,))
    return " ".join([name, *(str(value) for (value,) in values)])


def _write(run: Run, name: str, value: str) -> str:
    run.db.execute("INSERT OR REPLACE INTO registers VALUES (?, ?)", (name, int(value)))
    return f"{name} {int(value)}"


def _read_register(run: Run, name: str) -> str:
    return _value(run, "registers", name, "-")


def _transfer(run: Run, source: str, target: str, amount: str) -> str:
    """An overdraft breaks a constraint of the table."""
    for name, change in ((source, -int(amount)), (target, int(amount))):
        if not run.db.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (change, name)).rowcount:
            raise Fails(REFUSED)
    return OK


def _total(run: Run) -> str:
    (total,) = run.db.execute("SELECT sum(balance) FROM accounts").fetchone()
    return f"total {total}"


def _add(run: Run, name: str, value: str) -> str:
    run.db.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        (name, int(value)),
    )
    return OK


def _count(run: Run, name: str) -> str:
    return _value(run, "counters", name, "0")


def _put(run: Run, name: str, time: str, value: str) -> str:
    """The value itself decides last: a strict request and a relaxed one may have the same number."""
    run.db.execute(
        "INSERT INTO timed VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
        "SET time = excluded.time, session = excluded.session, number = excluded.number, value = excluded.value "
        "WHERE (excluded.time, excluded.session, excluded.number, excluded.value) > (time, session, number, value)",
        (name, int(time), run.action.session, run.action.number, int(value)),
    )
    return OK


def _get(run: Run, name: str) -> str:
    return _value(run, "timed", name, "-")


def _call(run: Run, name: str, arguments: str) -> str:
    procedure = run.procedures.active(name)
    if procedure is None:
        raise Fails(NO_PROCEDURE)
    parameters = procedure.parameters(arguments)
    if parameters is None:
        raise Fails(REFUSED)
    for statement in procedure.code:
        if not run.db.execute(statement, parameters).rowcount:
            raise Fails(REFUSED)
    return OK


def _value(run: Run, table: str, name: str, if_none: str) -> str:
    row = run.db.execute(f"SELECT value FROM {table} WHERE name = ?", (name,)).fetchone()
    return f"{name} {if_none if row is None else row[0]}"


class _Operation(NamedTuple):
    pattern: re.Pattern[str]
    do: Callable[..., str]


def _operation(pattern: str, do: Callable[..., str]) -> _Operation:
    return _Operation(re.compile(pattern, re.ASCII), do)


_RELAXABLE = frozenset({b"add", b"put"})
_NUMBER = r"(\d{1,15})"
_OPERATIONS: dict[str, tuple[_Operation, ...]] = {
    "append": (_operation(rf"append (l\d+) {_NUMBER}", _append),),
    "read": (_operation(r"read (l\d+)", _read_list), _operation(r"read (r\d+)", _read_register)),
    "write": (_operation(rf"write (r\d+) {_NUMBER}", _write),),
    "transfer": (_operation(rf"transfer (a\d+) (a\d+) {_NUMBER}", _transfer),),
    "total": (_operation(r"total", _total),),
    "add": (_operation(rf"add (c\d+) {_NUMBER}", _add),),
    "count": (_operation(r"count (c\d+)", _count),),
    "put": (_operation(rf"put (t\d+) {_NUMBER} {_NUMBER}", _put),),
    "get": (_operation(r"get (t\d+)", _get),),
    "call": (_operation(r"call (\w+) (.*)", _call),),
}
"""By their first word."""
