"""Determinism: what SQL would otherwise take from the place where it runs, it takes from the action.

| what                                    | where it comes from                                                |
|-----------------------------------------|--------------------------------------------------------------------|
| `'now'`, `CURRENT_TIMESTAMP`, defaults  | `Work.now`, through the clock of a file system of our own          |
| `random()`, `randomblob()`              | a digest of `Work.seed`, the session, the number, and which call   |
| `changes()`, `total_changes()`          | what the same action did                                           |
| `last_insert_rowid()`                   | the same: it is set to 0 before each action                        |
| local time                              | is UTC in this process                                             |

A file system in between costs 0.1 us an action, and tells one thing more: whether a write failed. SQLite says "full" of
a disk, and also of a table that has no more row numbers; only the second is an outcome.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import count

import apsw

from greenline.kernel.statements import Question, Work

UNIX_EPOCH_MS = 210_866_760_000_000
"""The first of January 1970, in milliseconds of the Julian day, as SQLite counts."""
DAY_MS = 86_400_000
RANDOM_BYTES = 64
"""Of a digest."""

LAST_ROWID = 2**63 - 1
_names = count(1)
_NOTHING = Work(0, 0, ())


class Moment:
    """What the hooks of one connection know of the action that runs on it."""

    __slots__ = (
        *("calls", "has_write_failed", "is_foreign", "number"),
        *("session", "steps", "took_last_rowid", "total", "work"),
    )

    def __init__(self) -> None:
        self.work: Work | Question = _NOTHING
        """What runs, with its time and where its chance begins."""
        self.session = ""
        self.number = 0
        self.calls = 0
        """Of chance, by that one."""
        self.total = 0
        """Changes on this connection before this action."""
        self.steps = 0
        """Thousands of steps that this action has taken."""
        self.is_foreign = False
        """A client's statement is prepared or run, not one of ours."""
        self.has_write_failed = False
        self.took_last_rowid = False
        """Some row that it wrote has the last rowid that there is: SQLite draws the next one by chance."""

    def begin(self, work: Work | Question, session: str, number: int, total: int) -> None:
        self.work = work
        self.session = session
        self.number = number
        self.total = total
        self.steps = 0
        self.took_last_rowid = False
        self.calls = 0


class Clock(apsw.VFS):
    """The file system `base`, in which it is always the moment that the action says."""

    def __init__(self, moment: Moment, base: str = "", name: str = "") -> None:
        self.name = name or f"greenline-{next(_names)}"
        self.moment = moment
        self.base = base
        super().__init__(self.name, base)

    # Names of SQLite's.

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        return UNIX_EPOCH_MS + self.moment.work.now // 1000

    def xCurrentTime(self) -> float:  # noqa: N802
        return self.xCurrentTimeInt64() / DAY_MS

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self.moment, self.base, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, moment: Moment, base: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._moment = moment
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        try:
            super().xWrite(data, offset)
        except apsw.Error:
            self._moment.has_write_failed = True
            raise


def watch_rowids(connection: apsw.Connection, moment: Moment) -> None:
    """Also those of triggers, and those that are gone again when a statement ends."""

    def on_row(_: int, __: str, ___: str, rowid: int) -> None:
        if rowid == LAST_ROWID:
            moment.took_last_rowid = True

    connection.set_update_hook(on_row)


def take_over_functions(connection: apsw.Connection, moment: Moment) -> None:
    """What SQLite would answer from its own state, it answers from the moment."""

    def random() -> int:
        return int.from_bytes(chance(moment, 8), "big", signed=True)

    def randomblob(size: int | float | str | bytes | None) -> bytes:
        if (wanted := max(1, _as_integer(size))) > connection.limit(apsw.SQLITE_LIMIT_LENGTH):
            too_big = apsw.exception_for(apsw.SQLITE_TOOBIG)
            too_big.args = ("string or blob too big",)
            raise too_big
        return chance(moment, wanted)

    def changes() -> int:
        return connection.changes() if connection.total_changes() > moment.total else 0

    def total_changes() -> int:
        return connection.total_changes() - moment.total

    functions: list[tuple[Callable[..., int | bytes], int]] = [
        (random, 0), (randomblob, 1), (changes, 0), (total_changes, 0),
    ]  # fmt: skip
    for function, arguments in functions:
        connection.create_scalar_function(function.__name__, function, arguments, flags=apsw.SQLITE_INNOCUOUS)


def chance(moment: Moment, size: int) -> bytes:
    moment.calls += 1
    origin = f"{moment.work.seed} {moment.number} {moment.calls} {moment.session}".encode()
    blocks = range((size + RANDOM_BYTES - 1) // RANDOM_BYTES)
    return b"".join([blake2b(origin, salt=block.to_bytes(16, "big")).digest() for block in blocks])[:size]


def tell_local_time_in_utc() -> None:
    """SQL may ask for local time, which must be the same everywhere."""
    if time.timezone != 0 or time.daylight != 0:
        os.environ["TZ"] = "UTC"
        time.tzset()


def _as_integer(value: int | float | str | bytes | None) -> int:
    """As SQLite takes a number from whatever it is given, near enough: the same everywhere."""
    try:
        return int(float(value or 0)) if not isinstance(value, int) else value
    except (ValueError, OverflowError):
        return 0
