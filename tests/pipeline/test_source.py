"""`format("greenline")` with a real cluster: what is read, and what is said when it cannot be.

One cluster for all: what its nodes hold is written once. Each thing that Spark does with a source is done by a real
session once; all else is asked of the source as Spark asks it, which takes no second a question.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSourceReader

from greenline.cli.local import Local
from greenline.pipeline.reaching import BadOption, reach
from greenline.pipeline.reading import AnotherOrder, NotRead
from greenline.pipeline.source import Greenline, StreamReader
from tests.node.databases import client
from tests.pipeline.test_source_reading import keeping

ROWS = 60
LAST = ROWS + 4
SECRET, WRONG = "sesame-4711", "sesame-4712"

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


def told(options: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


def read(spark: SparkSession, **options: object) -> DataFrame:
    return spark.read.format("greenline").options(**told(options)).load()


def reader(**options: object) -> DataSourceReader:
    source = Greenline(told(options))
    return source.reader(source.schema())


def rows(**options: object) -> list[dict[str, Any]]:
    """As a worker reads them, one partition after the other."""
    asked = reader(**options)
    return [row for each in asked.partitions() for batch in asked.read(each) for row in batch.to_pylist()]  # type: ignore[union-attr]


def test_the_order_itself(spark: SparkSession, cluster: Local) -> None:
    some = read(spark, at=cluster.place, per_partition=25).where("position > 30 AND position <= 62")
    few = some.select("position", f.spark_partition_id().alias("part")).collect()
    assert [row.position for row in few] == list(range(31, 63))
    assert {row.part for row in few} == {0, 1}, "two of 25: what nobody asks for is not read"

    assert [row["position"] for row in rows(at=cluster.place, per_partition=25)] == list(range(1, LAST + 1))
    assert len(reader(at=cluster.place, per_partition=25).partitions()) == 3
    assert [row["actions"] for row in rows(at=cluster.place, first=10, last=12)] == [1, 1, 1]
    assert rows(at=cluster.place, first=LAST + 1) == []


def test_actions_and_changes_come_from_an_archive_that_is_made_on_the_way(
    spark: SparkSession, cluster: Local, archive: Path
) -> None:
    table = read(spark, at=cluster.place, archive=archive, table="Accounts")
    assert [(field.name, field.dataType.simpleString()) for field in table.schema][:3] == [
        ("id", "bigint"),
        ("owner", "string"),
        ("balance", "decimal(8,2)"),
    ]
    seventh = table.where("id = 7").collect()
    assert sorted((row._commit_version, row._change_type, str(row.balance), row._other) for row in seventh) == [
        (8, "insert", "1.75", None),
        (LAST - 2, "update_postimage", "None", {"balance": '"none"'}),
        (LAST - 2, "update_preimage", "1.75", None),
    ]

    actions = rows(at=cluster.place, archive=archive, schema="actions")
    assert Counter((row["kind"], row["verdict"]) for row in actions) == {
        ("role", "done"): 1,
        ("work", "done"): LAST - 1,
    }
    assert Counter(row["_change_type"] for row in rows(archive=archive, schema="changes")) == {
        "delete": 1,
        "insert": ROWS,
        "update_postimage": 1,
        "update_preimage": 1,
    }
    assert len(rows(archive=archive)) == LAST, "it has the order as well"
    assert len(rows(archive=archive, table="accounts", last=10)) == 9
    with pytest.raises(BadOption, match="there is no table orders"):
        reader(archive=archive, table="orders")


def test_what_is_not_there_is_said(cluster: Local, tmp_path: Path) -> None:
    for options, words in (
        ({"last": 5000}, f"the order ends with position {LAST}, and last=5000 was asked for"),
        ({"at": "127.0.0.1:1", "user": "ada", "password": SECRET, "patience": 1}, "no node can be reached"),
        ({"at": "", "files": cluster.configs["p"].data}, "a node runs on"),
        ({"at": "", "archive": tmp_path / "nowhere", "schema": "actions"}, "there is no archive"),
    ):
        with pytest.raises(NotRead, match=words):
            reader(**{"at": cluster.place, **options}).partitions()


def test_secrets_are_shown_to_nobody(spark: SparkSession, cluster: Local, tmp_path: Path) -> None:
    there = reach({"at": str(cluster.place)})
    ca = tmp_path / "ca.pem"
    ca.write_text(there.ca)
    assert len(rows(at=there.addresses, user="rita", password=SECRET, ca=ca)) == LAST

    frame = read(spark, at=there.addresses, user="rita", password=WRONG, ca=ca)
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        frame.explain("extended")
    assert "greenline" in plan.getvalue()
    with pytest.raises(PySparkException) as raised:
        frame.count()
    assert "does not let rita in" in str(raised.value)
    for words in (plan.getvalue(), str(raised.value)):
        assert WRONG not in words


def test_a_stream_goes_on_where_its_checkpoint_stands(spark: SparkSession, cluster: Local, tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def keep(frame: DataFrame, _: int) -> None:
        seen.append(sorted(row[0] for row in frame.select("position").collect()))

    def run(**options: object) -> None:
        stream = spark.readStream.format("greenline").options(**told({"at": cluster.place, **options})).load()
        writing = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "marks"))
        writing.trigger(availableNow=True).start().awaitTermination()

    run(per_batch=25, last=40)
    assert seen == [list(range(1, 26)), list(range(26, 41))], "no more than was asked for at a time"
    run(per_batch=25, per_partition=10)
    assert seen[2:] == [list(range(41, LAST + 1))]
    mark = json.loads((tmp_path / "marks" / "offsets" / "2").read_text().splitlines()[-1])
    assert mark == {"position": LAST, "digest": rows(at=cluster.place, first=LAST)[0]["digest"].hex()}


def test_a_checkpoint_of_another_order_is_not_continued(cluster: Local) -> None:
    """Be that longer than this one, or shorter."""
    source = Greenline(told({"at": cluster.place, "patience": 1}))
    stream = source.streamReader(source.schema())
    assert isinstance(stream, StreamReader)
    begun = stream.initialOffset()
    newest = stream.latestOffset(begun, stream.getDefaultReadLimit())
    assert newest["position"] == LAST
    assert stream.latestOffset(newest, stream.getDefaultReadLimit()) == newest, "there is nothing new"
    for other in ({"position": LAST + 1, "digest": "00"}, {"position": 9, "digest": "00"}):
        with pytest.raises(AnotherOrder, match="this is another cluster, or it was restored from a backup"):
            stream.latestOffset(other, stream.getDefaultReadLimit())
    stream.stop()
