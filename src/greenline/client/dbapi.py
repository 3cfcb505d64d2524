"""PEP 249: the client for programs that do not know asyncio. Each connection has an event loop in a thread of its own.

    with closing(dbapi.connect("p.example:7420", user="ada", password=secret, ca=Path("ca.pem"))) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t VALUES (?)", (1,))
        connection.commit()

As PEP 249 wants it, a transaction begins with the first statement, and ends with `commit` or `rollback`; it is an
interactive one (`transaction`), so `commit` may raise `SerializationFailure`, an `OperationalError`: do it again, from
the first statement on. With `autocommit=True` each statement is an action or a query of its own, and `executemany` an
action for each of its rows.
"""

from __future__ import annotations

import asyncio
import datetime
import re
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from greenline.client import client
from greenline.client.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004  PEP 249 calls it so
)
from greenline.client.transaction import Transaction
from greenline.client.work import Given
from greenline.kernel.statements import Result

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

_QUERY = re.compile(r"\s*(SELECT|VALUES|EXPLAIN|PRAGMA\s+[^=]*$)", re.IGNORECASE)
"""What is certain to change nothing. Anything else is ordered, which is right for all."""
_T = TypeVar("_T")
_Column = tuple[str, None, None, None, None, None, None]


def connect(
    addresses: str,
    *,
    user: str,
    password: str,
    ca: Path | None = None,
    autocommit: bool = False,
    consistency: str = "strict",
    level: str = "local",
    timeout: float | None = None,
    connect_timeout: float = 10.0,
) -> Connection:
    """`consistency` is that of queries outside of transactions; `timeout`, in seconds, is for each request."""
    db = client.connect(addresses, user=user, password=password, ca=ca, connect_timeout=connect_timeout)
    return Connection(db, autocommit, consistency, level, timeout)


class Connection:
    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(
        self, db: client.Client, autocommit: bool, consistency: str, level: str, timeout: float | None
    ) -> None:
        self._db = db
        self._autocommit = autocommit
        self._consistency = consistency
        self._level = level
        self._timeout = timeout
        self._transaction: Transaction | None = None
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="greenline client", daemon=True)
        self._thread.start()
        try:
            self._wait(db.open())
        except BaseException:
            self._stop()
            raise

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self._transaction is not None:
            raise ProgrammingError("a transaction is open: commit it or roll it back before autocommit is changed")
        self._autocommit = value

    def cursor(self) -> Cursor:
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        self._check()
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            self._wait(transaction.commit())

    def rollback(self) -> None:
        self._check()
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    def close(self) -> None:
        """What was not committed never happens."""
        if not self._is_closed:
            self._wait(self._db.close())
            self._stop()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, or rolls back; the connection stays open."""
        if error is None:
            self.commit()
        else:
            self.rollback()

    # What cursors ask.

    def run(self, sql: str, parameters: Given) -> Result:
        self._check()
        return self._wait(self._run_alone(sql, parameters) if self._autocommit else self._begun(sql, parameters))

    def run_many(self, sql: str, rows: Sequence[Given]) -> int:
        """How many rows were changed, or -1 if that is not known before the end of the transaction."""
        self._check()
        if self._autocommit:
            return self._wait(self._db.executemany(sql, rows, level=self._level, timeout=self._timeout))
        self._wait(self._open_transaction().executemany(sql, rows))
        return -1

    async def _run_alone(self, sql: str, parameters: Given) -> Result:
        if _QUERY.match(sql):
            rows = await self._db.query(sql, parameters, consistency=self._consistency, timeout=self._timeout)
            return Result(0, 0, rows.columns, rows.rows)
        return (await self._db.execute(sql, parameters, level=self._level, timeout=self._timeout)).result

    async def _begun(self, sql: str, parameters: Given) -> Result:
        return await self._open_transaction().execute(sql, parameters)

    def _open_transaction(self) -> Transaction:
        if self._transaction is None:
            self._transaction = self._db.transaction(level=self._level, timeout=self._timeout)
        return self._transaction

    def _wait(self, what: Coroutine[Any, Any, _T]) -> _T:
        future = asyncio.run_coroutine_threadsafe(what, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # if the caller was interrupted

    def _check(self) -> None:
        if self._is_closed:
            raise InterfaceError("the connection was closed")

    def _stop(self) -> None:
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Cursor:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: tuple[_Column, ...] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._is_closed = False

    def execute(self, operation: str, parameters: Given = ()) -> Cursor:
        self._forget()
        result = self.connection.run(operation, parameters)
        self.lastrowid = result.last_id or None
        self.rowcount = result.changes
        if result.columns:
            self.description = tuple((name, None, None, None, None, None, None) for name in result.columns)
            self.rowcount = len(result.rows)
            self._rows = iter(result.rows)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Given]) -> Cursor:
        self._forget()
        self.rowcount = self.connection.run_many(operation, seq_of_parameters)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._result(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        wanted = self.arraysize if size is None else size
        return [row for _, row in zip(range(wanted), self._result(), strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._result())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._result()

    def close(self) -> None:
        self._forget()
        self._is_closed = True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """PEP 249 lets it do nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249 lets it do nothing."""

    def _forget(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor was closed")
        self.description, self.rowcount, self.lastrowid, self._rows = None, -1, None, None

    def _result(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            raise InterfaceError("there are no rows: execute a statement that has some")
        return self._rows


# Types. SQLite's are those of the values, not of the columns: `description` has none.

STRING = str
BINARY = bytes
NUMBER = float
DATETIME = str
ROWID = int
Binary = bytes


def Date(year: int, month: int, day: int) -> str:  # noqa: N802  PEP 249 calls it so
    return datetime.date(year, month, day).isoformat()


def Time(hour: int, minute: int, second: int) -> str:  # noqa: N802
    return datetime.time(hour, minute, second).isoformat()


def Timestamp(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:  # noqa: N802
    """As SQLite's `datetime` writes it."""
    return datetime.datetime(year, month, day, hour, minute, second).isoformat(sep=" ")


def DateFromTicks(ticks: float) -> str:  # noqa: N802
    return Date(*time.gmtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> str:  # noqa: N802
    return Time(*time.gmtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> str:  # noqa: N802
    return Timestamp(*time.gmtime(ticks)[:6])
