"""Tables that somebody has named or changed in odd ways, and pipelines that get in each other's way."""

from __future__ import annotations

import _thread
import inspect
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from greenline.database.sqlite import backups
from greenline.pipeline import loading, progress, tables_book
from greenline.pipeline.archive import Damaged, InUse
from greenline.pipeline.progress import Progress
from greenline.pipeline.reaching import BadOption
from greenline.pipeline.reading import Discarded, NotRead, Place
from greenline.pipeline.running import Running, Told
from greenline.pipeline.tables import NoTable, Tables
from greenline.pipeline.tables_book import BadBook, Table
from greenline.pipeline.tables_writing import at_once
from greenline.pipeline.twin import Twin
from tests.pipeline.orders import Order


def run(spark: SparkSession, place: Path, order: Order, *statements: str) -> Progress:
    for statement in statements:
        order.of(statement)
    with Running(spark, place, Told(order)) as work:
        return work.run()


def rows(spark: SparkSession, place: Path, table: str, position: int | None = None) -> list[dict[str, Any]]:
    tables = Tables(spark, place)
    found = tables.current(table) if position is None else tables.as_of(table, position)
    own = [name for name in found.columns if name not in ("_key", "_other", "_valid_from", "_valid_to")]
    return sorted((row.asDict() for row in found.select(*own).collect()), key=str)


def test_columns_named_like_those_that_are_there_while_tables_are_written_leave_a_table_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    order = Order()
    made = [f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {name} TEXT)" for name in ("_part", "_last_change")]
    run(spark, tmp_path, order, *made, "INSERT INTO _part VALUES (1, 'a')", "INSERT INTO _last_change VALUES (1, 'a')")
    ended = run(spark, tmp_path, order, "UPDATE _part SET _part = 'b'")
    assert ended.left_out.keys() == {"_part", "_last_change"}


def test_a_column_is_the_same_in_any_case(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE c (id INTEGER PRIMARY KEY, Name TEXT)", "INSERT INTO c VALUES (1, 'a')")
    run(spark, tmp_path, order, "ALTER TABLE c RENAME COLUMN Name TO name", "INSERT INTO c VALUES (2, 'b')")
    assert rows(spark, tmp_path, "c") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    run(spark, tmp_path, order, "DROP TABLE c", "CREATE TABLE c (NAME INTEGER)", "INSERT INTO c VALUES (3)")
    assert rows(spark, tmp_path, "c") == [{"NAME": 3}]
    assert rows(spark, tmp_path, "c", 2) == [{"id": 1, "Name": "a"}]


def test_a_table_that_was_left_out_says_so_and_is_made_from_the_archive_once_it_can_be(
    spark: SparkSession, tmp_path: Path
) -> None:
    order = Order()
    made = "CREATE TABLE k (id INTEGER PRIMARY KEY, a TEXT)", "INSERT INTO k VALUES (1, 'x'), (2, 'y')"
    run(spark, tmp_path, order, *made)
    run(spark, tmp_path, order, "ALTER TABLE k ADD COLUMN _key TEXT")
    for position in (2, 3):
        with pytest.raises(NoTable, match="left out"):
            rows(spark, tmp_path, "k", position)
    run(spark, tmp_path, order, "ALTER TABLE k RENAME COLUMN _key TO more", "DELETE FROM k WHERE id = 1")
    assert rows(spark, tmp_path, "k") == [{"id": 2, "a": "y", "more": None}]
    assert rows(spark, tmp_path, "k", 2) == [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}]


def test_a_table_that_was_left_out_is_there_once_it_can_be_also_if_no_row_was_changed_since(
    spark: SparkSession, tmp_path: Path
) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE k (id INTEGER PRIMARY KEY, _key TEXT)", "INSERT INTO k VALUES (1, 'x')")
    assert run(spark, tmp_path, order, "DELETE FROM k").left_out.keys() == {"k"}
    assert not run(spark, tmp_path, order, "ALTER TABLE k RENAME COLUMN _key TO more").left_out
    assert rows(spark, tmp_path, "k") == []


@pytest.mark.parametrize("together", [True, False])
def test_rows_are_shown_in_the_columns_that_they_had_whenever_they_were_written(
    spark: SparkSession, tmp_path: Path, together: bool
) -> None:
    order = Order()
    made = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT)", "INSERT INTO t VALUES (1, 'x', 'y')"
    later = "ALTER TABLE t RENAME COLUMN a TO c", "ALTER TABLE t DROP COLUMN b", "INSERT INTO t VALUES (2, 'z')"
    for statements in [(*made, *later)] if together else [made, later]:
        run(spark, tmp_path, order, *statements)
    tables = Tables(spark, tmp_path)
    shown = [tables.as_of("t", position).drop("_key").collect() for position in (2, 3, 5)]
    assert [[tuple(row)[:-3] for row in each] for each in shown] == [
        [(1, "x", "y")],
        [(1, "x", "y")],
        [(1, "x"), (2, "z")],
    ]
    assert [list(row.asDict())[:-3] for row, *_ in shown] == [["id", "a", "b"], ["id", "c", "b"], ["id", "c"]]
    history = {row["_valid_from"]: (row["c"], row["_other"]) for row in tables.history("t").where("id = 1").collect()}
    assert history == {2: (None, {"a": '"x"', "b": '"y"'}), 3: ("x", {"b": '"y"'}), 4: ("x", None)}


@pytest.mark.parametrize(
    ("one", "other"),
    [("\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"), ("i", "ı"), ("s", "ſ"), ("İ", "i"), ("\N{KELVIN SIGN}", "k")],
)
def test_columns_that_are_one_to_spark_leave_a_table_out(
    spark: SparkSession, tmp_path: Path, one: str, other: str
) -> None:
    order = Order()
    order.of(f'CREATE TABLE t (id INTEGER PRIMARY KEY, "{one}" TEXT, "{other}" TEXT)')
    assert run(spark, tmp_path, order, "INSERT INTO t VALUES (1, 'a', 'b')").left_out.keys() == {"t"}
    assert run(spark, tmp_path, order, "UPDATE t SET id = 2").left_out.keys() == {"t"}


def test_who_could_not_write_a_table_says_so_once_the_others_are_written(spark: SparkSession, tmp_path: Path) -> None:
    """Else they would still write while the next pipeline does."""
    order = Order()
    made = [f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, n INTEGER)" for name in "ab"]
    run(spark, tmp_path, order, *made, *(f"INSERT INTO {name} VALUES (1, 0)" for name in "ab"))
    (before,) = tables_book.read(tmp_path).tables["b"].current
    (tmp_path / tables_book.ASIDE / "a").rmdir()
    (tmp_path / tables_book.ASIDE / "a").touch()
    with pytest.raises(Exception, match=r"aside/a"):
        run(spark, tmp_path, order, "UPDATE a SET n = 1", "UPDATE b SET n = 1")
    assert {path.name for path in (tmp_path / "current" / "b").iterdir()} > {Path(before).name}
    (tmp_path / tables_book.ASIDE / "a").unlink()
    run(spark, tmp_path, order)
    assert rows(spark, tmp_path, "b") == [{"id": 1, "n": 1}]


def test_what_a_dropped_table_held_can_be_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    made = "CREATE TABLE gone (id INTEGER PRIMARY KEY, a BLOB)", "INSERT INTO gone VALUES (1, x'ff00')"
    run(spark, tmp_path, order, *made, "DROP TABLE gone", "CREATE TABLE other (a)")
    (held,) = Tables(spark, tmp_path).history("GONE").collect()
    assert (held["id"], bytes(held["a"]), held["_valid_from"], held["_valid_to"]) == (1, b"\xff\x00", 2, 3)
    run(
        spark, tmp_path, order, "CREATE TABLE gone (id INTEGER PRIMARY KEY, a TEXT)", "INSERT INTO gone VALUES (1, 't')"
    )
    history = Tables(spark, tmp_path).history("gone").collect()
    told = [(row["a"], row["_other"], row["_valid_to"]) for row in history]
    assert sorted(told, key=str) == [("t", None, None), (None, {"a": '{"blob":"ff00"}'}, 3)]


def test_a_table_may_have_a_long_name(spark: SparkSession, tmp_path: Path) -> None:
    order, names = Order(), ["世" * 30 + "一", "世" * 30 + "二"]
    for name in names:
        run(spark, tmp_path, order, f"CREATE TABLE {name} (a TEXT)", f"INSERT INTO {name} VALUES ('{name}')")
    assert [rows(spark, tmp_path, name) for name in names] == [[{"a": name}] for name in names]


def test_one_pipeline_at_a_time_also_of_what_is_archived_and_nothing_of_the_others_is_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenline.pipeline.archive.LOCK_S", 0.1)
    order = Order()
    order.of("CREATE TABLE t (a)")
    with Running(spark, tmp_path, Told(order)) as work:
        work.run()
        pin = tmp_path / tables_book.ASIDE / "pins" / "changes" / "held"
        pin.parent.mkdir(parents=True, exist_ok=True)
        pin.touch()
        for told in (Told(order), None):
            with pytest.raises(InUse, match="another pipeline writes the tables"):
                Running(spark, tmp_path, told)
        assert pin.exists()
    with Running(spark, tmp_path, None) as work:
        assert work.run().state == "ended"


def test_a_directory_that_is_replaced_stays_for_those_who_read_it(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE t (id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1, 1)")
    (before,) = tables_book.read(tmp_path).tables["t"].current
    long_ago = time.time() - 2 * tables_book.GRACE_S
    os.utime(tmp_path / before, (long_ago, long_ago))
    reader = Tables(spark, tmp_path).current("t")
    run(spark, tmp_path, order, "UPDATE t SET a = 2")
    assert before not in tables_book.read(tmp_path).tables["t"].current
    assert [row["a"] for row in reader.collect()] == ["1"]


@pytest.mark.parametrize("how", ["lost", "torn", "overwritten"])
def test_a_table_whose_files_are_lost_or_torn_says_so_and_is_made_again(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE t (id INTEGER PRIMARY KEY, a)", "INSERT INTO t VALUES (1, 1)")
    (kept,) = tables_book.read(tmp_path).tables["t"].current
    for path in tables_book.files_in(tmp_path / kept):
        size = path.stat().st_size
        match how:
            case "lost":
                path.unlink()
            case "torn":
                os.truncate(path, size // 2)
            case "overwritten":
                path.write_bytes(bytes(size))
    remedy = r"bring it back, or remove tables\.json"
    with pytest.raises(BadBook, match=remedy):
        Tables(spark, tmp_path).current("t")
    with pytest.raises(BadBook, match=remedy):
        run(spark, tmp_path, order, "UPDATE t SET a = 2")
    (tmp_path / tables_book.FILE).unlink()
    run(spark, tmp_path, order)
    assert [row["a"] for row in Tables(spark, tmp_path).current("t").collect()] == ["2"]


def test_an_archive_that_ends_before_its_tables_is_not_taken_for_another(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    max((tmp_path / "archive" / "segments").glob("*.json")).unlink()
    with pytest.raises(Damaged, match=r"go up to position 2, and .* ends with 0: a part of it is lost"):
        Tables(spark, tmp_path)


def test_who_is_started_again_is_as_late_as_who_was_killed(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    ended = run(spark, tmp_path, order, "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    ago, late = time.time() - 100.0, {"order": 9, "lag_seconds": 5.0, "written_lag_seconds": 20.0}
    progress.write(tmp_path, msgspec.structs.replace(ended, state="running", updated=ago, **late))
    with Running(spark, tmp_path, Told(order)) as work:
        said = work.run(verifies=False)
        assert said.lag_seconds == pytest.approx(105.0, abs=60.0)
        assert said.written_lag_seconds == pytest.approx(120.0, abs=60.0)
        order.of(*7 * ["INSERT INTO t SELECT max(id) + 1 FROM t"])
        for _ in range(6):
            order.of("INSERT INTO t SELECT max(id) + 1 FROM t")
        said = work.run(verifies=False)
        assert (said.lag_seconds, said.written_lag_seconds) == (0.0, 0.0)


def test_no_directory_that_spark_would_take_for_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="pattern"):
        Running(spark, tmp_path / "in[to]", None)


@pytest.mark.parametrize(
    "anew",
    [
        ("DROP TABLE users", "CREATE TABLE Users (id INTEGER PRIMARY KEY, a)", "INSERT INTO Users VALUES (1, 'x')"),
        ("ALTER TABLE users RENAME TO other", "ALTER TABLE other RENAME TO Users"),
    ],
)
def test_a_table_may_be_made_again_in_another_case(spark: SparkSession, tmp_path: Path, anew: tuple[str, ...]) -> None:
    order = Order()
    made = "CREATE TABLE users (id INTEGER PRIMARY KEY, a)", "INSERT INTO users VALUES (1, 'x')"
    run(spark, tmp_path, order, *made)
    assert run(spark, tmp_path, order, *anew).rows.items() >= {"users": 0, "Users": 1}.items()
    assert rows(spark, tmp_path, "USERS") == rows(spark, tmp_path, "users", 2) == [{"id": 1, "a": "x"}]


def test_only_letters_of_ascii_have_two_cases(spark: SparkSession, tmp_path: Path) -> None:
    """So it is for SQLite; Spark takes such columns for one."""
    order = Order()
    made = [f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY)' for name in "Ää"]
    filled = [f'INSERT INTO "{name}" VALUES ({number})' for number, name in enumerate("Ää")]
    both = 'CREATE TABLE both ("Ä" TEXT, "ä" TEXT)', "INSERT INTO both VALUES ('x', 'y')"
    ended = run(spark, tmp_path, order, *made, *filled, *both)
    assert [rows(spark, tmp_path, name) for name in "Ää"] == [[{"id": 0}], [{"id": 1}]]
    assert "like each other: Ä, ä" in ended.left_out["both"]
    run(spark, tmp_path, order, 'ALTER TABLE both RENAME COLUMN "ä" TO other')
    assert rows(spark, tmp_path, "both") == [{"Ä": "x", "other": "y"}]


def test_what_was_changed_in_the_archive_becomes_no_table(spark: SparkSession, tmp_path: Path) -> None:
    order = Order()
    run(spark, tmp_path, order, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('a secret')")
    (file,) = (tmp_path / "archive" / "changes").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    (tmp_path / tables_book.FILE).unlink()
    with pytest.raises(Damaged, match="is not what was written"), Running(spark, tmp_path, None) as work:
        work.run()
    assert not (tmp_path / tables_book.FILE).exists()


# Bases.


def backup(order: Order, position: int, place: Path) -> Path:
    twin = Twin(place / f"replica {position}")
    for bundle in order.bundles[:position]:
        twin.apply(bundle)
    twin.commit()
    twin.close()
    base = place / f"{position}.db"
    assert backups.take(place / f"replica {position}", base) == position
    return base


def test_a_base_is_taken_by_who_could_not_begin_without_it_or_with_another(spark: SparkSession, tmp_path: Path) -> None:
    order, into = Order(), tmp_path / "into"
    order.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    for number in range(40):
        order.of(f"INSERT INTO t (a) VALUES ({number})")
    order.low = 30
    with pytest.raises(Discarded, match="greenline backup"):
        run(spark, into, order)
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"this is no database" * 1000)
    for base, why in ((backup(order, 20, tmp_path), "too old"), (junk, "no file that `greenline backup`")):
        with pytest.raises(NotRead, match=rf"{base.name} cannot be what this archive begins with: .*{why}"):
            Running(spark, into, Told(order), base=base)
        with pytest.raises(Discarded, match="greenline backup"):
            run(spark, into, order)
    with Running(spark, into, Told(order), base=backup(order, 35, tmp_path)) as work:
        assert work.run().rows == {"t": 40}


def test_a_cluster_that_began_with_a_backup_is_followed_from_its_beginning(spark: SparkSession, tmp_path: Path) -> None:
    """Its order begins at 0 again, with rows that no bundle has brought."""
    before, order = Order(), Order()
    before.of("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    before.of("INSERT INTO t (a) VALUES (1), (2), (3)")
    backups.begin_anew(backup(before, 2, tmp_path), tmp_path / "replica")
    base = tmp_path / "base.db"
    assert backups.take(tmp_path / "replica", base) == 0
    order.of("UPDATE t SET a = 4 WHERE id = 1")
    with Running(spark, tmp_path / "into", Told(order), base=base) as work:
        assert work.run().rows == {"t": 3}
    assert [row["a"] for row in rows(spark, tmp_path / "into", "t", 0)] == ["1", "2", "3"]
    reader = spark.read.format("greenline").option("archive", str(tmp_path / "into" / "archive")).option("table", "t")
    told = sorted((row["_commit_version"], row["id"], row["a"]) for row in reader.load().collect())
    assert told == [(0, 1, "1"), (0, 2, "2"), (0, 3, "3"), (1, 1, "1"), (1, 1, "4")]
    assert [row["a"] for row in rows(spark, tmp_path / "into", "t")] == ["4", "2", "3"]


# Files of commas.


@pytest.mark.parametrize("ends_late", ["", "\n", "\r"], ids=["a row a line", "a row over two lines", "old lines"])
def test_csv_is_read_as_it_is_written_elsewhere(spark: SparkSession, tmp_path: Path, ends_late: str) -> None:
    text = 'id,said\n1,"Ann ""the"" Great"\n2,"says ""hi, there"""\n3,"C:\\dir\\"\n4,\n'
    expected: list[tuple[str, str | None]] = [
        ("1", 'Ann "the" Great'),
        ("2", 'says "hi, there"'),
        ("3", "C:\\dir\\"),
        ("4", None),
    ]
    if ends_late:
        text, expected = text + f'5,"one{ends_late}two"\n', [*expected, ("5", f"one{ends_late}two")]
    (tmp_path / "people.csv").write_bytes(text.encode())
    frame = loading.read(spark, tmp_path / "people.csv", "csv", is_created=False)
    assert [tuple(row) for row in frame.collect()] == expected


def test_nobody_writes_tables_any_more_when_an_interrupted_pipeline_has_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its directory may be another pipeline's by then."""
    run(spark, tmp_path, Order(), "CREATE TABLE t (a)")
    begun, done = list[int](), list[int]()

    def long_work(number: int) -> Table:
        begun.append(number)
        if number == 0:
            _thread.interrupt_main()
        time.sleep(1.0)
        done.append(number)
        return Table()

    with pytest.raises(KeyboardInterrupt):
        at_once(Tables(spark, tmp_path), [partial(long_work, number) for number in range(3)])
    assert sorted(done) == sorted(begun)
    assert 0 in done


def test_who_looks_how_far_the_order_goes_is_not_lost_unnoticed(spark: SparkSession, tmp_path: Path) -> None:
    """Else the lag would be nothing from then on."""

    class Refusing(Order):
        def newest(self) -> Place:
            if threading.current_thread() is not main and inspect.stack()[1].function == "_keep_looking":
                raise NotRead("the cluster does not let us in any more")
            return super().newest()

    main, order = threading.current_thread(), Refusing()
    order.of("CREATE TABLE t (a)")
    with (
        Running(spark, tmp_path, Told(order)) as work,
        pytest.raises(NotRead, match="does not let us in any more"),
    ):
        work.stream(threading.Event())
    said = progress.read(tmp_path)
    assert said is not None
    assert said.state == "failed"
