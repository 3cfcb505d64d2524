"""DataFrames into tables of real nodes, through Spark: tasks that fail, loads that are run twice, files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from greenline.cli.local import Local
from greenline.client import Unauthorised, Unreachable
from greenline.pipeline import loading
from greenline.pipeline.loading import NotLoaded
from greenline.pipeline.reaching import BadOption
from tests.node.databases import client, databases
from tests.pipeline import flaky

pytestmark = pytest.mark.long

ROWS = 20_000
PARTITIONS = 4
LISTENER = "rita"
"""May read, and no more."""
REFUSED = (PySparkException, Py4JJavaError)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with databases(tmp_path_factory.mktemp("cluster"), "p q r") as local:
        yield local


def ask(local: Local, sql: str) -> list[tuple[Any, ...]]:
    async def asked() -> list[tuple[Any, ...]]:
        async with client(local) as db:
            return list((await db.query(sql)).rows)

    return asyncio.run(asked())


def do(local: Local, sql: str) -> None:
    async def done() -> None:
        async with client(local) as db:
            await db.execute(sql)

    asyncio.run(done())


def appoint(local: Local, user: str, role: str) -> None:
    async def appointed() -> None:
        async with client(local) as db:
            await db.admin.create_user(user, "a secret", role)

    asyncio.run(appointed())


def save(frame: DataFrame, local: Local, table: str, **options: str) -> None:
    told = {"at": str(local.place), "table": table, **options}
    frame.write.format("greenline").options(**told).mode("append").save()


def numbers(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    return spark.range(0, rows, 1, PARTITIONS).select("id", f.concat(f.lit("number "), "id").alias("text"))


@pytest.fixture
def in_small_pieces(spark: SparkSession) -> Iterator[None]:
    """Spark hands a partition of thousands over in several pieces, so that something is loaded before it is lost."""
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(setting, "500")
    yield
    spark.conf.unset(setting)


@pytest.mark.usefixtures("in_small_pieces")
def test_a_load_fails_and_is_run_again_with_tasks_that_fail_and_every_row_is_there_once(
    spark: SparkSession, local: Local
) -> None:
    always = flaky.frame(spark, ROWS, PARTITIONS, losing=1, times=4, at=local.place, load="failing")
    once = flaky.frame(spark, ROWS, PARTITIONS, losing=1, times=1, at=local.place, load="failing")

    with pytest.raises(REFUSED, match="the executor is lost"):
        save(always, local, "failing", create="true", load="failing", batch="100")
    ((is_begun, is_filled),) = ask(
        local, "SELECT batches > 0, is_filled FROM spark_loads WHERE load = 'failing' AND partition = 0"
    )
    assert (is_begun, is_filled) == (1, 0)

    save(once, local, "failing", load="failing", batch="100")
    assert ask(local, "SELECT count(*), count(DISTINCT id), sum(id) FROM failing") == [
        (ROWS, ROWS, ROWS * (ROWS - 1) // 2)
    ]


def test_two_runs_of_one_load_at_once_and_one_later_load_it_once(spark: SparkSession, local: Local) -> None:
    """What speculation does to one task, done to all: each partition is written twice at the same time."""
    frame = numbers(spark)
    mistakes: list[Exception] = []

    def run() -> None:
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]
        try:
            save(frame, local, "twice", create="true", load="twice")
        except PySparkException as mistake:
            mistakes.append(mistake)

    runs = [threading.Thread(target=run) for _ in range(2)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    run()

    assert mistakes == []
    assert ask(local, "SELECT count(*), count(DISTINCT id) FROM twice") == [(ROWS, ROWS)]


def test_loads_of_other_names_and_of_none_add_to_the_table(spark: SparkSession, local: Local) -> None:
    frame = numbers(spark, 100)
    save(frame, local, "added", create="true", load="first")
    save(frame, local, "added", load="second")
    save(frame, local, "added")
    save(frame, local, "added")

    assert ask(local, "SELECT count(*), count(DISTINCT id) FROM added") == [(400, 100)]


def test_a_load_that_is_run_again_with_other_partitions_does_not_pass(spark: SparkSession, local: Local) -> None:
    """Also if some partition begins with all that it had, or had nothing; or if one is left out."""
    first = numbers(spark, 4000).where("id < 3000")
    save(first, local, "parted", create="true", load="parted")
    for other in (first.coalesce(2), numbers(spark, 4000)):
        with pytest.raises(PySparkException, match="this attempt has other rows"):
            save(other, local, "parted", load="parted")
    with pytest.raises(REFUSED, match="but this run has 1000, in 1 partitions"):
        save(spark.range(0, 1000, 1, 1).selectExpr("id", "'number ' || id AS text"), local, "parted", load="parted")

    assert ask(local, "SELECT count(*), count(DISTINCT id) FROM parted") == [(3000, 3000)]


def test_values_arrive_as_they_are_under_their_columns_names(spark: SparkSession, local: Local) -> None:
    row = (
        *(1, 2**62, 0.5, True, "text ' \" ä", b"\x00\xff"),
        *(Decimal("12345678901234567890.123"), date(2024, 2, 29), datetime(2026, 5, 1, 12, 0, 0, 1)),
    )
    schema = (
        'a short, `a "b" c` long, d double, e boolean, `select` string, g binary, h decimal(30,3), i date, j timestamp'
    )
    frame = spark.createDataFrame([row, (None,) * 9], schema)

    save(frame, local, 'odd "name"', create="true")

    expected = (
        *(1, 2**62, 0.5, 1, "text ' \" ä", b"\x00\xff"),
        *("12345678901234567890.123", "2024-02-29", "2026-05-01 12:00:00.000001"),
    )
    assert sorted(ask(local, 'SELECT * FROM "odd ""name"""'), key=str) == [expected, (None,) * 9]


@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        (lambda df: df, {"table": "nowhere"}, "there is no table nowhere: create it first"),
        (lambda df: df.withColumnRenamed("text", "txt"), {}, "chosen has no column txt: it has id, text"),
        (
            lambda df: df.withColumn("text", f.array("text")),
            {},
            "column text is array<string>, for which SQL has no type",
        ),
        (lambda df: df, {"tabel": "x"}, "there is no option tabel: did you mean table?"),
        (lambda df: df, {"batch": "none"}, "batch=none: write a whole number from 1"),
        (lambda df: df, {"table": "spark_loads"}, "spark_loads is where loads keep their accounts"),
        (lambda df: df, {"user": "nobody", "password": "wrong"}, "Unauthorised: "),
        (lambda df: df, {"at": "127.0.0.1:1", "user": "u", "password": "hidden"}, "127.0.0.1:1"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_loaded(
    spark: SparkSession, local: Local, change: Callable[[DataFrame], DataFrame], options: dict[str, str], why: str
) -> None:
    do(local, "CREATE TABLE IF NOT EXISTS chosen (id INTEGER, text TEXT)")
    with pytest.raises(PySparkException) as refused:
        save(change(numbers(spark, 10)), local, **{"table": "chosen", **options})
    assert why in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert ask(local, "SELECT count(*) FROM chosen") == [(0,)]


def test_a_load_does_not_overwrite(spark: SparkSession, local: Local) -> None:
    writing = numbers(spark, 1).write.format("greenline").options(at=str(local.place), table="t").mode("overwrite")
    with pytest.raises(PySparkException, match="a load adds to a table"):
        writing.save()


def test_files_are_loaded_and_the_tables_types_decide(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    at = {"at": str(local.place)}
    do(local, "CREATE TABLE people (id INTEGER PRIMARY KEY, code TEXT)")
    (tmp_path / "people.csv").write_text("id,code\n1,007\n2,\n3,x\n")
    (tmp_path / "more.jsonl").write_text('{"id": 4, "code": "four"}\n{"id": 3, "code": "again"}\n')
    pq.write_table(pa.table({"id": [5, 6], "code": ["five", "six"]}), tmp_path / "most.parquet")

    assert loading.load(spark, tmp_path / "people.csv", "people", at, name="csv").rows == 3
    assert loading.load(spark, tmp_path / "people.csv", "people", at, name="csv").rows == 3
    assert loading.load(spark, tmp_path / "most.parquet", "people", at).rows == 2
    assert loading.load(spark, tmp_path / "people.csv", "guessed", at, is_created=True).rows == 3
    with pytest.raises(NotLoaded, match=r"its row 2 was refused: UNIQUE constraint failed: people.id \(.*again"):
        loading.load(spark, tmp_path / "more.jsonl", "people", at)

    people = [(1, "007"), (2, None), (3, "x"), (5, "five"), (6, "six")]
    assert sorted(ask(local, "SELECT id, code FROM people")) == people
    assert sorted(ask(local, "SELECT id, code FROM guessed")) == [(1, "007"), (2, None), (3, "x")]


def test_a_text_without_letters_is_one_and_nothing_is_null(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    at = {"at": str(local.place)}
    (tmp_path / "e.csv").write_text('id,a\n1,""\n2,\n3,x\n')
    do(local, "CREATE TABLE e (id INTEGER PRIMARY KEY, a TEXT)")
    loading.load(spark, tmp_path / "e.csv", "e", at)
    loading.load(spark, tmp_path / "e.csv", "guessed_e", at, is_created=True)
    for table in ("e", "guessed_e"):
        assert sorted(ask(local, f"SELECT id, a FROM {table}")) == [(1, ""), (2, None), (3, "x")]

    (tmp_path / "q.csv").write_text('"id","n","t","a"\n"1","5","2026-05-01 10:00:00",""\n"2","","","y"\n')
    loading.load(spark, tmp_path / "q.csv", "quoted", at, is_created=True)
    assert sorted(ask(local, "SELECT id, n, t, a FROM quoted")) == [
        (1, 5, "2026-05-01 10:00:00.000000", ""),
        (2, None, None, "y"),
    ]


def test_types_are_guessed_only_for_a_table_that_is_made(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    """007 may be meant as text: what is there already says so. A load that made its table is taken up all the same."""
    at = {"at": str(local.place)}
    (tmp_path / "codes.csv").write_text("code\n007\n")
    do(local, "CREATE TABLE codes (code TEXT)")
    with pytest.raises(BadOption, match="there is a table codes already: without option"):
        loading.load(spark, tmp_path / "codes.csv", "codes", at, is_created=True)
    for _ in range(2):
        assert loading.load(spark, tmp_path / "codes.csv", "new", at, name="once", is_created=True).rows == 1
    assert ask(local, "SELECT code FROM new") == [(7,)]

    (tmp_path / "short.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(NotLoaded, match="0 rows of the load mended are in the table; who gives its name goes on"):
        loading.load(spark, tmp_path / "short.csv", "short", at, name="mended", is_created=True)
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3,4\n")
    assert loading.load(spark, tmp_path / "short.csv", "short", at, name="mended", is_created=True).rows == 2


def test_what_directories_say_is_text_as_what_files_say(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    do(local, "CREATE TABLE coded (id INTEGER, code TEXT)")
    for code in ("007", "1e3"):
        (tmp_path / f"code={code}").mkdir()
        (tmp_path / f"code={code}" / "b.csv").write_text("id\n1\n")
    assert loading.load(spark, tmp_path, "coded", {"at": str(local.place)}, kind="csv").rows == 2
    assert sorted(ask(local, "SELECT code FROM coded")) == [("007",), ("1e3",)]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("n.json", '{"n": 9007199254740993}\n{"n": 1.5}\n', "9007199254740993"),
        ("n.json", '{"n": 12345678901234567890123}\n{"n": 1.5}\n', "12345678901234567890123"),
        ("n.csv", "n\n9007199254740993\n1.5\n", "9007199254740993"),
        ("n.csv", "n\n1e400\n1.5\n", "1e400"),
        ("n.csv", "n\n0.12345678901234567890\n1.5\n", "0.12345678901234567890"),
    ],
)
def test_numbers_that_a_guess_would_bend_are_refused(
    spark: SparkSession, local: Local, tmp_path: Path, name: str, text: str, found: str
) -> None:
    at = {"at": str(local.place)}
    (tmp_path / name).write_text(text)
    with pytest.raises(BadOption, match=f"has {found} in its column n, which would be"):
        loading.load(spark, tmp_path / name, "bent", at, is_created=True)
    (tmp_path / name).write_text(text.replace(found, "9007199254740992"))
    loading.load(spark, tmp_path / name, f"straight_{name[2:]}", at, is_created=True)
    values = ask(local, f"SELECT n FROM straight_{name[2:]}")
    assert sorted(values)[0] == (1.5,)
    assert sorted(values)[-1] == (2.0**53,)
    do(local, f"DROP TABLE straight_{name[2:]}")


def test_moments_that_a_guess_would_cut_are_refused(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    at = {"at": str(local.place)}
    (tmp_path / "t.csv").write_text("t\n2026-05-01 10:00:00.123456789\n")
    with pytest.raises(BadOption, match=r"has 2026-05-01 10:00:00\.123456789 in its column t, which would be cut"):
        loading.load(spark, tmp_path / "t.csv", "moments", at, is_created=True)
    (tmp_path / "t.csv").write_text("t\n2026-05-01 10:00:00.123456000\n")
    loading.load(spark, tmp_path / "t.csv", "moments", at, is_created=True)
    assert ask(local, "SELECT t FROM moments") == [("2026-05-01 10:00:00.123456",)]


def test_a_file_that_cannot_be_read_stops_the_load(spark: SparkSession, local: Local, tmp_path: Path) -> None:
    at = {"at": str(local.place)}
    do(local, "CREATE TABLE unread (a TEXT, b TEXT)")
    appoint(local, LISTENER, "read")
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")

    with pytest.raises(NotLoaded, match=r"short\.csv cannot be loaded: .*MALFORMED"):
        loading.load(spark, tmp_path / "short.csv", "unread", at)
    with pytest.raises(BadOption, match=r"cut\.parquet is no whole Parquet file"):
        loading.load(spark, tmp_path / "cut.parquet", "unread", at)
    with pytest.raises(BadOption, match=r"there is no .*none\.csv"):
        loading.load(spark, tmp_path / "none.csv", "unread", at)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(BadOption, match="has no rows"):
        loading.load(spark, tmp_path / "empty.csv", "unread", at)
    with pytest.raises(BadOption, match="what kind of file"):
        loading.load(spark, tmp_path / "unread.txt", "unread", at)
    with pytest.raises(BadOption, match="there is no table nowhere: create it first"):
        loading.load(spark, tmp_path / "short.csv", "nowhere", at)
    for user, mistake in ((LISTENER, BadOption), ("nobody", Unauthorised)):
        with pytest.raises(mistake, match=user):
            loading.load(spark, tmp_path / "short.csv", "unread", {**at, "user": user, "password": "a secret"})
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        loading.load(spark, tmp_path / "short.csv", "unread", {"at": "127.0.0.1:1", "user": "u", "password": "p"})
    assert ask(local, "SELECT count(*) FROM unread") == [(0,)]
