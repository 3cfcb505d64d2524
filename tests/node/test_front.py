"""What clients meet at a real node: HTTP, limits, and questions that never end."""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from greenline.cli.cluster import show
from greenline.cli.local import Local, make
from greenline.cli.ports import free_ports
from greenline.cli.reach import reach
from greenline.client import Client, DataError, OperationalError
from greenline.database.sqlite.adapter import VERSION
from greenline.node.status import Status
from tests.node.callers import many_descriptors
from tests.node.databases import client, databases

IDLE, BUSY = 1000, 200
MOST_BYTES_EACH = 64 << 10
"""Of a node's memory, for a client: it takes 21 KB. asyncio's own TLS would take 256 KB and more."""
ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Local, int]]:
    """A cluster of one, with an HTTP port, whose queries may take a second."""
    place = tmp_path_factory.mktemp("alone")
    make(place, ("p",))
    (web,) = free_ports(1)
    path = place / "p.toml"
    path.write_text(f'web = "127.0.0.1:{web}"\n{path.read_text()}\n[limits]\nquery_seconds = 1\n')
    with databases(place, "p") as local:
        yield local, web


def asked(place: Path, web: int, path: str, body: object | None = None) -> Any:
    reached = reach(place)
    context = ssl.create_default_context(cafile=str(reached.ca))
    request = urllib.request.Request(
        f"https://127.0.0.1:{web}{path}", None if body is None else json.dumps(body).encode()
    )
    account = base64.b64encode(f"{reached.user}:{reached.password}".encode()).decode()
    request.add_header("Authorization", f"Basic {account}")
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def test_a_program_without_our_library_writes_and_reads_over_https(alone: tuple[Local, int]) -> None:
    local, web = alone
    asked(local.place, web, "/sql", {"sql": "CREATE TABLE web (a)"})
    first = asked(local.place, web, "/sql", {"sql": "INSERT INTO web VALUES (?)", "parameters": [7]})
    again = {"sql": "INSERT INTO web VALUES (?)", "parameters": [7]}
    again |= {"session": first["session"], "number": first["number"]}
    assert asked(local.place, web, "/sql", again)["position"] == first["position"]
    rows = asked(local.place, web, "/sql", {"sql": "SELECT a FROM web"})["rows"]
    assert rows == [[7]]


def test_a_statement_is_a_query_if_sqlite_says_that_it_only_reads(alone: tuple[Local, int]) -> None:
    """Whatever it begins with; queries are not ordered."""

    def told(sql: str) -> Any:
        return asked(alone[0].place, alone[1], "/sql", {"sql": sql})

    told("CREATE TABLE begins (a)")
    for sql in ("WITH w AS (SELECT 7) INSERT INTO begins SELECT * FROM w", "/* why */ PRAGMA user_version = 7"):
        assert told(sql)["colour"] == "green", sql
    for sql in ("WITH w AS (SELECT a FROM begins) SELECT * FROM w", "-- why\nSELECT 7", "PRAGMA user_version"):
        query = told(sql)
        assert (query["rows"], query["consistency"]) == ([[7]], "strict"), sql


def test_a_node_says_which_sqlite_it_runs_and_status_warns_if_they_are_not_the_same(
    alone: tuple[Local, int], capsys: pytest.CaptureFixture[str]
) -> None:
    p = alone[0].status("p")
    assert isinstance(p, Status)
    assert p.sqlite == VERSION
    q, r = msgspec.structs.replace(p, name="q"), msgspec.structs.replace(p, name="r", sqlite="3.99.0")
    show({"p": p, "q": q})
    assert "SQLite" not in capsys.readouterr().out
    show({"p": p, "q": q, "r": r})
    assert f"not the same SQLite everywhere ({VERSION} at p q, 3.99.0 at r)" in capsys.readouterr().out


def test_an_endless_query_is_stopped_and_others_do_not_wait_for_it(alone: tuple[Local, int]) -> None:
    async def story() -> None:
        async with client(alone[0]) as one, client(alone[0]) as other:
            endless = asyncio.create_task(one.query(ENDLESS))
            begun = time.monotonic()
            assert (await other.query("SELECT 1")).rows == ((1,),)
            assert time.monotonic() - begun < 1
            with pytest.raises(OperationalError, match="longer than a query may"):
                await endless

    asyncio.run(story())


@pytest.mark.slow
def test_an_endless_update_fails_alike_everywhere_and_the_next_one_is_served(alone: tuple[Local, int]) -> None:
    async def story() -> None:
        async with client(alone[0]) as db:
            await db.execute("CREATE TABLE ends (a)")
            with pytest.raises(OperationalError, match="more steps than an action may"):
                await db.execute(f"INSERT INTO ends {ENDLESS}")
            await db.execute("INSERT INTO ends VALUES (1)")
            assert (await db.query("SELECT count(*) FROM ends")).rows == ((1,),)

    asyncio.run(story())


@pytest.mark.slow
def test_a_thousand_idle_clients_and_two_hundred_busy_ones_are_served_over_tls(alone: tuple[Local, int]) -> None:
    """Each takes little of the node's memory; and whoever was idle is served when it asks."""
    local, reached = alone[0], reach(alone[0].place)
    before = memory_of(local)

    async def story() -> None:
        clients: list[Client] = []
        try:
            while len(clients) < IDLE + BUSY:
                clients += [reached.connected() for _ in range(50)]
                await asyncio.gather(*(db.open() for db in clients[-50:]))
            assert (memory_of(local) - before) / len(clients) < MOST_BYTES_EACH

            await clients[0].execute("CREATE TABLE busy (a)")
            for number in range(10):
                await asyncio.gather(*(db.execute("INSERT INTO busy VALUES (?)", (number,)) for db in clients[IDLE:]))
            assert (await clients[0].query("SELECT count(*) FROM busy")).rows == ((10 * BUSY,),)
        finally:
            await asyncio.gather(*(db.close() for db in clients))

    with many_descriptors():
        asyncio.run(story())


def memory_of(local: Local) -> int:
    """What the node has of it at this moment, in bytes."""
    said = Path(f"/proc/{local.pid('p')}/statm").read_text().split()
    return int(said[1]) * resource.getpagesize()


def test_what_is_too_large_is_refused_with_its_size(alone: tuple[Local, int]) -> None:
    async def story() -> None:
        async with client(alone[0]) as db:
            with pytest.raises(DataError, match="bytes"):
                await db.execute("SELECT ?", ("x" * 2_000_000,))
            with pytest.raises(DataError, match="larger than it may be"):
                await db.query("SELECT zeroblob(9000000)")

    asyncio.run(story())
