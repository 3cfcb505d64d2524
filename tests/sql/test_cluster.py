"""SQL through three real nodes behaves as in SQLite, and leaves the same in each of their databases.

`SQL_STATEMENTS=10000` makes it ten thousand one by one and ten thousand at once; what all tests together can afford is
less.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from greenline.cli.local import Local
from greenline.client import Client, DatabaseError
from greenline.database.sqlite import tables
from greenline.kernel.statements import Failure, Statement, Work, encode
from tests.node.databases import client, databases
from tests.sql.comparison import UNTOLD, Content, Played, Script, difference, one_by_one
from tests.sql.plain import Said, content_of
from tests.sql.scripts import OTHER, first

NAMES = "p q r"
ASKED = int(os.environ.get("SQL_STATEMENTS", "0"))
SINGLY, PIPELINED = ASKED or 250, ASKED or 1250
NOW = 1_700_000_000_000_000


@pytest.mark.slow
def test_a_client_of_three_nodes_is_told_what_sqlite_says(tmp_path: Path) -> None:
    """No shrinking here: what goes wrong at nodes only is rare, and its script is best read from its end."""

    def through_three_nodes(script: Script) -> Played:
        with databases(tmp_path, NAMES) as local:
            said = asyncio.run(_told(local, script))
        contents = [_content(path) for path in sorted(tmp_path.rglob(tables.FILE))]
        assert len(contents) == len(NAMES.split())
        assert contents[1:] == contents[:-1]
        return said, contents[0]

    found = difference(one_by_one(first(SINGLY + PIPELINED, OTHER)), through_three_nodes)
    assert found is None, str(found)[-3000:]


async def _told(local: Local, script: Script) -> list[Said]:
    """First one by one, each a bundle of its own; the rest at once, in order all the same, in bundles as they come.

    Then wait until every node has all of it.
    """
    middle = len(script) * SINGLY // (SINGLY + PIPELINED)
    async with client(local) as db:
        said = [await _one(db, step.action) for step in script[:middle]]
        said += await asyncio.gather(*(_one(db, step.action) for step in script[middle:]))
        until = db.seen
    for name in local.names:
        async with client(local, at=name) as db:
            while (await db.digests()).position < until:
                await asyncio.sleep(0.01)
    return said


async def _one(db: Client, action: tuple[Statement, ...]) -> Said:
    try:
        return (await db.write(encode(Work(NOW, 7, action)))).results
    except DatabaseError as error:
        return Failure(error.code, error.kind, str(error), UNTOLD)


def _content(path: Path) -> Content:
    db = apsw.Connection(str(path))
    try:
        return content_of(db)
    finally:
        db.close()
