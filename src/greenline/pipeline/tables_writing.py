"""Writing the tables: from one position to the next, each range exactly once, whatever is killed in between.

A range that only inserts into a table is added to what is there, so that it does not matter how often that is done;
any other makes its current state anew, and adds what is over to its history. Before that, what was archived is checked
(`expectations`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

from greenline.pipeline import glance, source_table, tables_book, tables_inserting, versions
from greenline.pipeline.archive import BUNDLES, CHANGES, KINDS
from greenline.pipeline.capture import DELETE, INSERT
from greenline.pipeline.expectations import LOG, SHOWN, Unexpected, check, check_chain
from greenline.pipeline.reading import Place
from greenline.pipeline.segments import force
from greenline.pipeline.tables import Stretch, Tables
from greenline.pipeline.tables_book import ASIDE, CURRENT, HISTORY, Book, Table, directory
from greenline.pipeline.versions import PART, TO

MANY = 16
"""Directories that one table has of a kind, before they are made one."""
_THREADS = ThreadPoolExecutor(4, "tables")
"""So many tables are written at a time; each thread has a partner in Java, so they are kept."""
_EXPECTED = "only rows that are there are changed, and no row is inserted where one is"


def check_log(tables: Tables, after: Place, last: int) -> Place:
    """Of what was archived from there to a position; then where that leads. Raises `Unexpected`."""
    if last <= after.position:
        return after
    first = after.position + 1
    tables.asked(lambda archive: archive.check(first, last))
    files = {kind: tables.files(kind, first, last) for kind in KINDS}
    if not glance.is_expected(files, first, last):
        frames = {kind: tables.log(kind, first, last) for kind in KINDS}
        frames["positions"] = tables.spark.range(first, last + 1).withColumnRenamed("id", "position")
        check(LOG, frames)
    return check_chain(files[BUNDLES], after, last)


class Unwritten:
    """What was archived since the tables were last written: does it do anything but insert?"""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._seen = tables.reached.position
        self._are_inserts = True

    def are_inserts(self, last: int) -> bool:
        """Up to this position. Each file is looked at once, and none after the first that does."""
        if self._are_inserts and last > self._seen:
            self._tables.archive.refresh()
            files = self._tables.files(CHANGES, self._seen + 1, last)
            found = glance.kinds(files, self._seen + 1, last).values()
            self._are_inserts = all(kinds == {INSERT} for kinds in found)
            self._seen = last
        return self._are_inserts


def write(tables: Tables, to: Place) -> Book:
    """All tables, up to a place; then the book as it is now. Raises `Unexpected`."""
    before, last = tables.book, to.position
    if last <= before.position:
        return before
    first = tables.first_unwritten
    kinds = glance.kinds(tables.files(CHANGES, first, last), first, last)
    # What was left out may have lost the columns that it was left out for, without a row that was changed.
    names = sorted(kinds.keys() | {name for name, table in before.tables.items() if table.left_out})
    made = at_once(tables, [partial(_written, tables, name, kinds.get(name, set()), first, last) for name in names])
    known = {
        **dict.fromkeys(tables.asked(lambda archive: archive.tables(last)), Table()),
        **before.tables,
        **dict(zip(names, made, strict=True)),
    }
    book = Book(position=last, digest=to.digest.hex(), tables=known)
    tables_book.write(tables.place, book, before)
    tables.book = book
    return book


def at_once(tables: Tables, works: Sequence[Callable[[], Table]]) -> list[Table]:
    """Until all have come to an end, also if one of them has failed, or somebody has had enough: nobody writes once the
    directory is another pipeline's."""
    context, writing, jobs = tables.spark.sparkContext, list[Future[Table]](), f"tables in {tables.place}"

    def known(work: Callable[[], Table]) -> Table:
        context.setJobGroup(jobs, jobs)
        return work()

    try:
        for work in works:
            writing.append(_THREADS.submit(known, work))
        wait(writing)
    except BaseException:
        for each in writing:
            each.cancel()
        with suppress(Py4JError, OSError):  # Java may be gone
            context.cancelJobGroup(jobs)
        wait(writing)
        raise
    return [each.result() for each in writing]


def _written(tables: Tables, name: str, kinds: set[str], first: int, last: int) -> Table:
    """One table, brought up to a position."""
    before = tables.book.tables.get(name, Table())
    columns = tables.known_columns(name, last)
    assert columns, "a table that was changed was there after some position"
    if clashing := versions.clashing(columns):
        return Table(left_out=f"it has columns that are named like ours, or like each other: {', '.join(clashing)}")
    if before.left_out:
        before, first, kinds = Table(), 0, {INSERT, DELETE}  # what it held is in the archive
    schema = source_table.schema_of(columns)
    current = _joined(tables, before.current) if kinds == {INSERT} else before.current
    if kinds == {INSERT} and len(current) < MANY:
        aside = tables.place / directory(ASIDE, name, first, last)
        changes = tables.files(CHANGES, first, last)
        archive = tables.archive.path
        count = tables_inserting.write(tables.spark, aside, archive, changes, name, schema, first, last)
        added = _put(aside, tables.place, directory(CURRENT, name, first, last))
        return Table(current + added, before.history, before.rows + count)
    for stretch in tables.stretches(name, first, last):
        before = _followed(tables, name, before, stretch)
    return Table(before.current, _joined(tables, before.history), before.rows)


def _followed(tables: Tables, name: str, before: Table, stretch: Stretch) -> Table:
    """Its current rows, all anew, and those that are over."""
    history = before.history
    there = tables.stored(before.current) if before.current else None
    if there is not None and stretch.is_retold:
        over = directory(HISTORY, name, stretch.first, stretch.first) + "-over"
        aside = _aside(tables, over)
        versions.ended(there, stretch.first).write.mode("overwrite").parquet(str(aside))
        history += _put(aside, tables.place, over)
        there = None
    followed = tables.followed(name, there, stretch)
    seen = Observation()
    counted = followed.observe(seen, f.count_if(versions.contradicts()).alias("contradictions"))
    made = _save(tables, name, versions.versions(counted), stretch.first, stretch.last)
    if seen.get["contradictions"]:
        shown = versions.contradictions(followed).limit(SHOWN).collect()
        raise Unexpected(f"versions of {name}", _EXPECTED, [row.asDict() for row in shown])
    return Table(made.current, history + made.history, made.rows)


def _joined(tables: Tables, directories: tuple[str, ...]) -> tuple[str, ...]:
    """Many that are alike as one, by links where files are large: of what was only inserted, or of what is over."""
    last, wanted = _alike(tables, directories)
    if not last:
        return directories
    aside = _aside(tables, wanted)
    tables_inserting.join(aside, [tables.place / each for each in last])
    return directories[: -len(last)] + _put(aside, tables.place, wanted)


def _aside(tables: Tables, wanted: str) -> Path:
    """Where a directory is written before it is put where it is wanted."""
    return tables.place.joinpath(ASIDE, *Path(wanted).parts[1:])


def _save(tables: Tables, name: str, found: DataFrame, first: int, last: int) -> Table:
    """Written aside, and then put where it belongs."""
    is_over = f.col(TO).isNotNull()
    counts = Observation()
    counted = found.observe(counts, f.count_if(~is_over).alias(CURRENT), f.count_if(is_over).alias(HISTORY))
    aside = tables.place / directory(ASIDE, name, first, last)
    part = f.when(is_over, HISTORY).otherwise(CURRENT)
    counted.withColumn(PART, part).write.mode("overwrite").partitionBy(PART).parquet(str(aside))
    put = {
        kind: _put(aside / f"{PART}={kind}", tables.place, directory(kind, name, first, last))
        for kind in (CURRENT, HISTORY)
        if counts.get[kind]
    }
    shutil.rmtree(aside)
    return Table(put.get(CURRENT, ()), put.get(HISTORY, ()), counts.get[CURRENT])


def _put(aside: Path, place: Path, wanted: str) -> tuple[str]:
    """What a killed one has put there is not in the book."""
    path = place / wanted
    if path.exists():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tables_book.list_files(aside)
    for each in (*aside.iterdir(), aside):
        force(each)
    aside.replace(path)
    force(path.parent)
    return (wanted,)


def _alike(tables: Tables, directories: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """If they are many: the last of them, as far as they have the same columns, and what they are called as one."""
    count = tables_inserting.alike([tables.place / each for each in directories]) if len(directories) >= MANY else 0
    if count < MANY // 2:
        return (), ""
    last = directories[-count:]
    begin, end = Path(last[0]).name.split("-")[0], Path(last[-1]).name.split("-")[1]
    return last, str(Path(last[0]).with_name(f"{begin}-{end}"))
