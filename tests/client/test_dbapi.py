"""PEP 249, as its programs use it: from threads, without asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from greenline.client import dbapi
from greenline.client.errors import SerializationFailure
from tests.client.places import INSERT, TABLE, Stage
from tests.client.server import PASSWORD


class Elsewhere:
    """A server in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._stage, self.address = asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()

    async def _begin(self) -> tuple[Stage, str]:
        stage = Stage()
        return stage, (await stage.server()).address

    @property
    def position(self) -> int:
        return self._stage.cluster.position

    def connect(self, *, autocommit: bool = False) -> dbapi.Connection:
        return dbapi.connect(self.address, user="ada", password=PASSWORD, autocommit=autocommit)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stage.clear(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def server() -> Iterator[Elsewhere]:
    server = Elsewhere()
    yield server
    server.stop()


@pytest.fixture
def connection(server: Elsewhere) -> Iterator[dbapi.Connection]:
    with closing(server.connect()) as connection:
        connection.cursor().execute(TABLE)
        connection.commit()
        yield connection


def rows_of(server: Elsewhere) -> list[tuple[object, ...]]:
    with closing(server.connect(autocommit=True)) as other:
        return other.cursor().execute("SELECT b FROM t ORDER BY a").fetchall()


def test_the_module_says_what_pep_249_asks() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert issubclass(dbapi.IntegrityError, dbapi.DatabaseError)
    assert issubclass(SerializationFailure, dbapi.OperationalError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    assert dbapi.Connection.Error is dbapi.Error
    assert not issubclass(dbapi.Warning, dbapi.Error)


def test_nothing_happens_before_commit_and_nothing_after_rollback(
    server: Elsewhere, connection: dbapi.Connection
) -> None:
    cursor = connection.cursor()
    cursor.execute(INSERT, ("x",))
    assert (cursor.rowcount, cursor.lastrowid, cursor.description) == (1, 1, None)
    assert rows_of(server) == []
    connection.commit()
    assert rows_of(server) == [("x",)]

    cursor.execute(INSERT, ("y",))
    connection.rollback()
    connection.commit()
    assert rows_of(server) == [("x",)]


def test_rows_are_fetched_one_by_one_some_and_all(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany(INSERT, [(number,) for number in range(6)])
    cursor.execute("SELECT a, b FROM t ORDER BY a")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["a", "b"]
    assert cursor.rowcount == 6
    assert cursor.fetchone() == (1, 0)
    assert cursor.fetchmany() == [(2, 1)]
    assert cursor.fetchmany(2) == [(3, 2), (4, 3)]
    assert cursor.fetchall() == [(5, 4), (6, 5)]
    assert cursor.fetchone() is None
    assert [row[0] for row in cursor.execute("SELECT b FROM t WHERE b > :least", {"least": 3})] == [4, 5]


def test_a_conflict_at_commit_is_an_operational_error_and_the_connection_goes_on(
    server: Elsewhere, connection: dbapi.Connection
) -> None:
    with closing(server.connect(autocommit=True)) as other:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM t")
        cursor.execute(INSERT, ("x",))
        other.cursor().execute(INSERT, ("y",))
        with pytest.raises(dbapi.OperationalError):
            connection.commit()

        cursor.execute(INSERT, ("z",))
        connection.commit()
    assert rows_of(server) == [("y",), ("z",)]


def test_with_autocommit_each_statement_is_on_its_own(server: Elsewhere, connection: dbapi.Connection) -> None:
    before = server.position
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.executemany(INSERT, [(number,) for number in range(100)])
    assert cursor.rowcount == 100
    cursor.execute("SELECT count(*) FROM t")
    assert cursor.fetchall() == [(100,)]
    after = server.position
    cursor.execute("WITH v(x) AS (VALUES (1)) INSERT INTO t (b) SELECT x FROM v RETURNING a")
    assert (cursor.fetchall(), cursor.rowcount) == ([(101,)], 1)
    assert (after > before, server.position) == (True, after + 1)
    with pytest.raises(dbapi.IntegrityError):
        cursor.execute("INSERT INTO t VALUES (1, 1)")


def test_a_with_block_commits_or_rolls_back(server: Elsewhere, connection: dbapi.Connection) -> None:
    with connection:
        connection.cursor().execute(INSERT, ("x",))
    with pytest.raises(dbapi.IntegrityError), connection:
        connection.cursor().executemany("INSERT INTO t VALUES (?, 'y')", [(2,), (2,)])
    assert rows_of(server) == [("x",)]


def test_misuse_is_an_interface_error(server: Elsewhere, connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="no rows"):
        cursor.fetchone()
    cursor.execute(INSERT, ("x",))
    with pytest.raises(dbapi.ProgrammingError, match="autocommit"):
        connection.autocommit = True
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor was closed"):
        cursor.execute(INSERT, ("x",))
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="connection was closed"):
        connection.cursor()
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(server.address, user="ada", password="guess")  # noqa: S106


def test_times_are_text_as_sqlite_writes_it() -> None:
    assert dbapi.Date(2026, 2, 3) == "2026-02-03"
    assert dbapi.Time(4, 5, 6) == "04:05:06"
    assert dbapi.Timestamp(2026, 2, 3, 4, 5, 6) == dbapi.TimestampFromTicks(1770091506) == "2026-02-03 04:05:06"
    assert (dbapi.DateFromTicks(0), dbapi.TimeFromTicks(0)) == ("1970-01-01", "00:00:00")
    assert dbapi.Binary(b"x") == b"x"
