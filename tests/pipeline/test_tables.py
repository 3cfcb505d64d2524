"""Tables of a real cluster: what they hold is what its replicas hold, at every position that anybody has seen."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from greenline.cli.local import Local, waits_for
from greenline.pipeline import progress, tables_book
from greenline.pipeline.expectations import Unexpected
from greenline.pipeline.reading import AnotherOrder, Discarded
from greenline.pipeline.running import Running, told
from greenline.pipeline.tables import NoTable, Tables
from tests.node.databases import client, until_primary
from tests.pipeline.clusters import keeping

pytestmark = pytest.mark.long

Rows = list[tuple[Any, ...]]

STORY = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL)",
    "CREATE TABLE tag (item INTEGER, word TEXT)",
    "CREATE TABLE odd (_key TEXT)",
    "INSERT INTO item VALUES (1, 'ann', 1.5), (2, 'bob', NULL), (3, 'cat', 3)",
    "INSERT INTO tag VALUES (1, 'x'), (1, 'x'), (2, 'y')",
    "INSERT INTO odd VALUES ('k')",
)
SEQUEL = (
    "UPDATE item SET name = 'amy' WHERE id = 1",
    "DELETE FROM item WHERE id = 2",
    "INSERT INTO item VALUES (2, 'again', 2)",
    "ALTER TABLE item ADD COLUMN more TEXT DEFAULT 'none'",
    "UPDATE item SET more = 'some' WHERE id = 3",
    "DELETE FROM tag WHERE rowid = 2",
)
_ITEMS = "SELECT * FROM item"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with keeping(tmp_path_factory.mktemp("cluster")) as local:
        yield local


async def tell(local: Local, statements: tuple[str, ...]) -> dict[int, Rows]:
    """What the replicas say of the items after each."""
    seen = {}
    async with client(local) as db:
        for statement in statements:
            await db.execute(statement)
            if statement.startswith("CREATE"):
                continue
            rows = await db.query(_ITEMS)
            seen[rows.position] = sorted(rows.rows)
    return seen


def own(frame: DataFrame) -> Rows:
    """The table's own columns."""
    columns = [name for name in frame.columns if not name.startswith("_")]
    return sorted(tuple(row.values()) for row in frame.select(*columns).toArrow().to_pylist())


def test_the_tables_are_what_the_replicas_say_at_every_position(
    spark: SparkSession, local: Local, tmp_path: Path
) -> None:
    """In two runs, with a change of a table's definition between; then things go wrong, and are noticed."""
    options = {"at": str(local.place)}
    seen = asyncio.run(tell(local, STORY))
    with Running(spark, tmp_path, told(options)) as work:
        ended = work.run()
    assert ended.state == "ended"
    assert ended.archived == ended.written == ended.verified == max(seen)
    assert ended.rows == {"item": 3, "tag": 3}
    assert "named like ours" in ended.left_out["odd"]
    first = tables_book.read(tmp_path)
    assert first.tables["item"].history == ()

    seen |= asyncio.run(tell(local, SEQUEL))
    with Running(spark, tmp_path, told(options)) as work:
        ended = work.run()
    assert ended.verified == max(seen)
    assert ended.rows == {"item": 3, "tag": 2}

    tables = Tables(spark, tmp_path)
    for position, rows in seen.items():
        assert own(tables.as_of("item", position)) == rows, position
    assert own(tables.current("ITEM")) == seen[max(seen)]
    assert tables.as_of("item", first.position).columns[:3] == ["id", "name", "price"]
    lives = [(row["_valid_from"], row["_valid_to"]) for row in tables.history("item").where("id = 2").collect()]
    inserted, deleted, again, altered = sorted(seen)[0], *sorted(seen)[4:7]
    assert sorted(lives) == [(inserted, deleted), (again, altered), (altered, None)]
    assert own(tables.history("tag").where("_valid_to IS NOT NULL")) == [(1, "x")]

    # Every position once, and each with its actions.
    assert tables.log("bundles").count() == ended.archived
    assert tables.log("actions").where("statements[0] LIKE 'UPDATE%'").count() == 2

    with pytest.raises(NoTable, match="there is item, odd, tag"):
        tables.current("nothing")
    with pytest.raises(Discarded, match=f"not after {ended.archived + 1}"):
        tables.as_of("item", ended.archived + 1)

    check_that_nobody_is_fooled(spark, tmp_path)


def check_that_nobody_is_fooled(spark: SparkSession, place: Path) -> None:
    """Rows that are lost, and a book of another order."""
    book = tables_book.read(place)
    with Running(spark, place, None) as work:
        (kept,) = book.tables["tag"].current
        rows = work.tables.stored((kept,)).limit(1).localCheckpoint()
        rows.write.mode("overwrite").parquet(str(place / kept))
        tables_book.list_files(place / kept)  # whoever lost them was one of us
        with pytest.raises(Unexpected, match=r"the tables rebuilt at position \d+ are the database's.*tag"):
            work.compare()
    tables_book.write(place, tables_book.Book(position=book.position, digest="00", tables=book.tables))
    with pytest.raises(AnotherOrder, match="another order"):
        Tables(spark, place)


@pytest.mark.long
def test_a_range_that_a_killed_pipeline_has_begun_is_made_again(
    spark: SparkSession, local: Local, tmp_path: Path
) -> None:
    """All is written, and the book is not: the next one finds directories that nobody has named."""
    with Running(spark, tmp_path, told({"at": str(local.place)})) as work:
        before = work.run(verifies=False)
    names = tables_book.read(tmp_path)
    (tmp_path / tables_book.FILE).unlink()
    stray = tmp_path / "current" / "item" / "stray"
    shutil.copytree(tmp_path / names.tables["item"].current[0], stray)
    os.utime(stray, (0, 0))  # whoever was killed was so long ago
    with Running(spark, tmp_path, None) as work:
        work.run(verifies=False)
        work.compare()
    assert tables_book.read(tmp_path) == names
    assert progress.read(tmp_path).rows == before.rows  # type: ignore[union-attr]
    assert not stray.exists()


LEAST = 3000
TOGETHER = 20
PAUSE_S = 0.02
PATIENCE_S = 300.0
"""Spark takes seconds to start, and minutes where many others want to run."""


def load(place: str, enough: str) -> None:
    """Some thousand actions, in a process of its own; a replica is killed in the middle. On until it is enough."""
    local = Local(Path(place))

    async def run() -> None:
        async with client(local) as db:
            await db.execute("CREATE TABLE many (id INTEGER PRIMARY KEY, n INTEGER)")
            start = 0
            while start < LEAST or not Path(enough).exists():
                rows = range(start, start + TOGETHER)
                await asyncio.gather(*(db.execute("INSERT INTO many (n) VALUES (?)", (n,)) for n in rows))
                await db.execute("UPDATE many SET n = -n WHERE id = ?", (start + 1,))
                if start == LEAST // 2:
                    await asyncio.to_thread(local.kill, "r")
                start += TOGETHER
                await asyncio.sleep(PAUSE_S)

    asyncio.run(run())


def kill_a_stream_that_has_written(local: Local, into: Path) -> None:
    before = tables_book.read(into).position
    words = ["pipeline", "stream", "--dir", str(local.place), "--into", str(into)]
    said = into.parent / "stream.log"
    with said.open("wb") as log:
        stream = subprocess.Popen(
            [sys.executable, "-m", "greenline.cli.main", *words], stdout=log, stderr=log, start_new_session=True
        )
    try:
        waits_for(lambda: stream.poll() is not None or tables_book.read(into).position > before, PATIENCE_S)
        assert stream.poll() is None, said.read_text()
        assert tables_book.read(into).position > before
    finally:
        with suppress(ProcessLookupError):  # it may have ended by itself, which was told above
            os.killpg(stream.pid, signal.SIGKILL)
        stream.wait()


@pytest.mark.long
def test_spark_and_a_replica_are_killed_and_each_position_is_there_once(
    spark: SparkSession, local: Local, tmp_path: Path
) -> None:
    into, enough = tmp_path / "into", tmp_path / "enough"
    call = f"from {__name__} import load; load({str(local.place)!r}, {str(enough)!r})"
    with subprocess.Popen([sys.executable, "-c", call]) as loading:
        try:
            kill_a_stream_that_has_written(local, into)
            kill_a_stream_that_has_written(local, into)
        finally:
            enough.touch()
    assert loading.returncode == 0
    local.restart("r")
    until_primary(local, "p q r")

    with Running(spark, into, told({"at": str(local.place)})) as work:
        ended = work.run()
    assert ended.rows["many"] >= LEAST
    tables = Tables(spark, into)
    assert tables.log("bundles").select("position").distinct().count() == ended.archived
    assert own(tables.current("many")) == asyncio.run(_rows(local, "SELECT id, n FROM many"))


async def _rows(local: Local, query: str) -> Rows:
    async with client(local) as db:
        return sorted((await db.query(query)).rows)
