"""What clients meet at a real node: HTTP, limits, and questions that never end."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from greenline.cli.local import Local, free_ports, make
from greenline.cli.reach import reach
from greenline.client import DataError, OperationalError
from tests.node.databases import client, databases

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


def test_what_is_too_large_is_refused_with_its_size(alone: tuple[Local, int]) -> None:
    async def story() -> None:
        async with client(alone[0]) as db:
            with pytest.raises(DataError, match="bytes"):
                await db.execute("SELECT ?", ("x" * 2_000_000,))
            with pytest.raises(DataError, match="larger than it may be"):
                await db.query("SELECT zeroblob(9000000)")

    asyncio.run(story())
