"""`format("greenline")` on a real Spark session, with a real cluster: what is read, and what is said when it cannot be.

One cluster for all: what its nodes hold is written once.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from greenline.cli.local import Local
from greenline.pipeline.reaching import reach
from tests.node.databases import client
from tests.pipeline.test_source_reading import keeping

ROWS = 60
LAST = ROWS + 4
SECRET = "sesame-4711"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with keeping(tmp_path_factory.mktemp("cluster"), "p q") as local:
        asyncio.run(_fill(local))
        yield local


async def _fill(local: Local) -> None:
    async with client(local) as db:
        await db.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, balance DECIMAL(8, 2))")
        for number in range(1, ROWS + 1):
            await db.execute("INSERT INTO accounts VALUES (?, ?, ?)", (number, "ada", number / 4))
        await db.execute("UPDATE accounts SET balance = 'none' WHERE id = 7")
        await db.execute("DELETE FROM accounts WHERE id = 8")
        await db.admin.create_user("rita", SECRET, "read")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody keeps one yet."""
    return tmp_path_factory.mktemp("archive") / "kept"


def read(spark: SparkSession, **options: object) -> DataFrame:
    return spark.read.format("greenline").options(**{name: str(value) for name, value in options.items()}).load()


def said(frame: DataFrame) -> str:
    """What Spark raises when this is computed, without the way that it came."""
    with pytest.raises(PySparkException) as raised:
        frame.count()
    return str(raised.value)


def test_the_order_itself(spark: SparkSession, cluster: Local) -> None:
    bundles = read(spark, at=cluster.place, per_partition=25)
    assert [row.position for row in bundles.select("position").collect()] == list(range(1, LAST + 1))
    assert bundles.rdd.getNumPartitions() == 3
    few = bundles.where("position > 60 AND position <= 62")
    assert [row.position for row in few.collect()] == [61, 62]
    assert few.rdd.getNumPartitions() == 1, "what nobody asks for is not read"
    assert [row.actions for row in read(spark, at=cluster.place, first=10, last=12).collect()] == [1, 1, 1]
    assert read(spark, at=cluster.place, first=LAST + 1).count() == 0


def test_actions_and_changes_come_from_an_archive_that_is_made_on_the_way(
    spark: SparkSession, cluster: Local, archive: Path
) -> None:
    actions = read(spark, at=cluster.place, archive=archive, schema="actions")
    assert actions.groupBy("kind", "verdict").count().orderBy("kind").collect() == [
        ("role", "done", 1),
        ("work", "done", LAST - 1),
    ]
    changes = read(spark, archive=archive, schema="changes")
    assert changes.groupBy("_change_type").count().orderBy("_change_type").collect() == [
        ("delete", 1),
        ("insert", ROWS),
        ("update_postimage", 1),
        ("update_preimage", 1),
    ]
    assert read(spark, archive=archive).count() == LAST, "it has the order as well"

    table = read(spark, archive=archive, table="Accounts")
    assert [(field.name, field.dataType.simpleString()) for field in table.schema][:3] == [
        ("id", "bigint"),
        ("owner", "string"),
        ("balance", "decimal(8,2)"),
    ]
    seventh = table.where("id = 7").orderBy("_commit_version", "_change_type").collect()
    assert [(row._change_type, str(row.balance), row._other) for row in seventh] == [
        ("insert", "1.75", None),
        ("update_postimage", "None", {"balance": '"none"'}),
        ("update_preimage", "1.75", None),
    ]
    assert read(spark, archive=archive, table="accounts", last=10).count() == 9


def test_what_is_not_there_is_said(spark: SparkSession, cluster: Local, archive: Path) -> None:
    beyond = said(read(spark, at=cluster.place, last=5000))
    assert f"the order ends with position {LAST}, and last=5000 was asked for" in beyond
    assert "no node can be reached" in said(read(spark, at="127.0.0.1:1", user="ada", password=SECRET, patience=1))
    assert "a node runs on" in said(read(spark, files=cluster.configs["p"].data))
    for options, words in (
        ({"archive": archive, "table": "orders"}, "there is no table orders"),
        ({"tabel": "accounts"}, "there is no option tabel: did you mean table?"),
        ({"at": "", "archive": archive / "nowhere", "schema": "actions"}, "there is no archive"),
    ):
        with pytest.raises(PySparkException) as raised:
            read(spark, **{"at": cluster.place, **options})
        assert words in str(raised.value)


def test_secrets_are_shown_to_nobody(spark: SparkSession, cluster: Local, tmp_path: Path) -> None:
    there = reach({"at": str(cluster.place)})
    ca = tmp_path / "ca.pem"
    ca.write_text(there.ca)
    for password, is_right in ((SECRET, True), ("sesame-4712", False)):
        frame = read(spark, at=there.addresses, user="rita", password=password, ca=ca)
        plan = io.StringIO()
        with contextlib.redirect_stdout(plan):
            frame.explain("extended")
        assert "greenline" in plan.getvalue()
        assert password not in plan.getvalue()
        if is_right:
            assert frame.count() == LAST
        else:
            words = said(frame)
            assert "does not let rita in" in words
            assert password not in words


def test_a_stream_goes_on_where_its_checkpoint_stands(spark: SparkSession, cluster: Local, tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def keep(frame: DataFrame, _: int) -> None:
        seen.append(sorted(row[0] for row in frame.select("position").collect()))

    def run(**options: object) -> None:
        stream = spark.readStream.format("greenline").options(**{name: str(value) for name, value in options.items()})
        writing = stream.load().writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "marks"))
        writing.trigger(availableNow=True).start().awaitTermination()

    run(at=cluster.place, per_batch=25, last=40)
    assert seen == [list(range(1, 26)), list(range(26, 41))], "no more than was asked for at a time"
    run(at=cluster.place, per_batch=25, per_partition=10)
    assert seen[2:] == [list(range(41, LAST + 1))]
    run(at=cluster.place, per_batch=25)
    assert len(seen) == 3, "there is nothing new"

    with keeping(tmp_path / "elsewhere", "p") as other:
        for rows in (1, ROWS):  # first it is shorter than the checkpoint, and then longer
            asyncio.run(_fill_otherwise(other, rows))
            with pytest.raises(PySparkException, match="this is another cluster, or it was restored from a backup"):
                run(at=other.place, patience=1)
    assert len(seen) == 3


async def _fill_otherwise(local: Local, rows: int) -> None:
    async with client(local) as db:
        await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        for number in range(rows + 10):
            await db.execute("INSERT INTO t VALUES (?)", (number,))
