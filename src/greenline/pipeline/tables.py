"""Tables: the log, and what each replicated table holds, held, and held after any position, for who asks with Spark.

    tables = Tables(spark, Path("tables"))
    tables.log("actions")                      also bundles and changes
    tables.current("accounts")                 by now
    tables.history("accounts")                 all that it ever held, with `_valid_from` and `_valid_to`
    tables.as_of("accounts", 4711)             after that position

They are in one place (`tables_book`), together with the archive that they are made from. What was archived since they
were last written is taken from there: nobody sees less than the archive has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from greenline.pipeline import rows, source_table, tables_book, versions
from greenline.pipeline.archive import ACTIONS, BUNDLES, CHANGES, Archive, Damaged
from greenline.pipeline.captured import Column
from greenline.pipeline.changes import CHANGES as CHANGED
from greenline.pipeline.expectations import Fingerprint
from greenline.pipeline.graph import Step, joined
from greenline.pipeline.pins import TRIES, Pins
from greenline.pipeline.reading import AnotherOrder, Place
from greenline.pipeline.tables_book import Table
from greenline.pipeline.versions import CHECK

ARCHIVE = "archive"
_T = TypeVar("_T")
_SCHEMAS = {
    kind: from_arrow_schema(schema)
    for kind, schema in {BUNDLES: rows.BUNDLES, ACTIONS: rows.ACTIONS, CHANGES: CHANGED}.items()
}


class Stretch(NamedTuple):
    """Positions in which the columns of a table have one type each."""

    first: int
    last: int
    is_retold: bool = False
    """At the first one all that is there is told anew, and what was there before is over."""


class NoTable(Exception):
    """There is no such table, or it cannot be shown: why, and which there are."""


class Tables:
    def __init__(self, spark: SparkSession, place: Path, pins: Pins | None = None) -> None:
        """`pins`: of who reads while a follower writes.

        Raises `BadBook`, `Damaged`, or `AnotherOrder` if they were not made from the archive that is there.
        """
        self.place = place.absolute()  # on other machines as well
        self.spark = spark
        self.archive = Archive(self.place / ARCHIVE)
        self.book = tables_book.read(place)
        self._pins = pins
        self._check_book()

    def refresh(self) -> None:
        """What others have written since."""
        self.archive.refresh()
        self.book = tables_book.read(self.place)

    @property
    def reached(self) -> Place:
        """How far the tables are written; where the archive begins, if they are not."""
        if self.book.position:
            return Place(self.book.position, bytes.fromhex(self.book.digest))
        return Place(self.archive.base, self.archive.digest_at(self.archive.base))

    @property
    def first_unwritten(self) -> int:
        """The first position that is not; a base may stand at 0."""
        return self.book.position + 1 if self.book.position else 0

    def _check_book(self) -> None:
        position = self.book.position
        if position > self.archive.last:
            raise Damaged(
                f"the tables in {self.place} go up to position {position}, and {self.archive} ends with "
                f"{self.archive.last}: a part of it is lost: bring that back; or keep the tables' files as they are, "
                "and begin anew in another directory"
            )
        if position and self.archive.digest_at(position).hex() != self.book.digest:
            raise AnotherOrder(
                f"the tables in {self.place} were made up to position {position} from another order than "
                f"{self.archive} has: bring back the archive that they were made from, or remove {tables_book.FILE}"
            )

    # What there is.

    def log(self, kind: str, first: int = 0, last: int | None = None) -> DataFrame:
        """`bundles`, `actions` or `changes` of these positions."""
        end = self.archive.last if last is None else last
        paths = [str(path) for path in self.files(kind, first, end)]
        reader = self.spark.read.schema(_SCHEMAS[kind])
        found = reader.parquet(*paths) if paths else self.spark.createDataFrame([], _SCHEMAS[kind])
        position = "_commit_version" if kind == CHANGES else "position"
        return found.where(f.col(position).between(first, end))

    def current(self, table: str) -> DataFrame:
        return self.as_of(table, self.archive.last).drop(versions.TO)

    def as_of(self, table: str, position: int) -> DataFrame:
        """Raises `NoTable`, or `Discarded` if the archive does not reach so far."""
        self.archive.check_reach(position)
        name, schema = self._shape(table, position)
        return versions.between(self._versions(name, schema, position), position).drop(CHECK)

    def history(self, table: str) -> DataFrame:
        """In the columns that it has by now, or had last. Raises `NoTable`."""
        name, schema = self._shape(table, self.last_seen(table, self.archive.last))
        return self._versions(name, schema, self.archive.last).drop(CHECK)

    def fingerprints(self, position: int) -> dict[str, Fingerprint]:
        """Of all tables after a position, but for those that are left out."""
        found = {}
        for name in self.asked(lambda archive: archive.tables(position)):
            columns = self.columns(name, position)
            if not versions.clashing(columns):
                every = self._versions(name, source_table.schema_of(columns), position)
                row = versions.between(every, position).agg(f.count("*"), f.sum(CHECK)).first()
                if row is not None and row[0]:
                    found[name] = Fingerprint(row[0], row[1])
        return found

    # How.

    def asked(self, question: Callable[[Archive], _T]) -> _T:
        """Of the archive; once more of a fresh one, if segments have become one meanwhile."""
        for _ in range(TRIES):
            try:
                return question(self.archive)
            except Damaged:
                self.archive.refresh()
        return question(self.archive)

    def files(self, kind: str, first: int, last: int) -> list[Path]:
        if self._pins is None:
            return self.archive.files(kind, first, last)
        return self._pins.held(self.archive, kind, first, last)

    def stored(self, directories: tuple[str, ...]) -> DataFrame:
        """What is written in some of the book's directories."""
        return versions.together(map(self._stored_in, directories))

    def _stored_in(self, directory: str) -> DataFrame:
        """For Spark it would be a job of its own to see which columns it has."""
        files = tables_book.files_in(self.place / directory)
        schema = tables_book.schema_of(files[0])
        return self.spark.read.schema(from_arrow_schema(schema)).parquet(*map(str, files))

    def typed(self, table: str, schema: pa.Schema, first: int, last: int) -> DataFrame:
        changes = self.log(CHANGES, first, last).where(f.col("table") == table)
        return joined([Step("typed", ("changes",), versions.typed(schema))], {"changes": changes})["typed"]

    def followed(self, table: str, there: DataFrame | None, stretch: Stretch) -> DataFrame:
        """What was there, and what was changed since, in the columns that the table has then."""
        columns = self.known_columns(table, stretch.last)
        clashing = versions.clashing(columns)  # in a stretch that others follow; their values are in `_other`
        schema = source_table.schema_of(each for each in columns if each[0] not in clashing)
        changes = self.typed(table, schema, stretch.first, stretch.last)
        if stretch.is_retold:
            changes = versions.retold(changes, stretch.first)
        before = versions.inserted(changes.limit(0)) if there is None else there
        frames = {"there": before, "typed": changes}
        return joined([Step("followed", ("there", "typed"), versions.followed)], frames)["followed"]

    def stretches(self, table: str, first: int, last: int) -> list[Stretch]:
        """These positions, cut wherever a column of the table is gone, or has got another type than it ever had: what
        rows were until then is shown in the columns that they had."""
        found, known, had = [Stretch(first, last)], dict[str, pa.DataType](), set[str]()
        for since, columns in self._definitions(table, last):
            types = {column.name.lower(): source_table.type_of(column.declared) for column in columns}
            is_another = had - types.keys() or any(known.get(name, kind) != kind for name, kind in types.items())
            if since >= first and is_another:
                before = found.pop()
                found += [Stretch(before.first, since - 1, before.is_retold)] if before.first < since else []
                found.append(Stretch(since, last, is_retold=True))
            known, had = known | types, set(types)
        return found

    def _definitions(self, table: str, last: int) -> Iterator[tuple[int, tuple[Column, ...]]]:
        """Of a table up to a position, each with the position that it holds from."""
        before: tuple[Column, ...] = ()
        for manifest in self.asked(Archive.manifests):
            for since, tables in manifest.schemas:
                columns = tables.get(table, before)
                if since <= last and columns != before:
                    yield since, columns
                    before = columns

    def _versions(self, table: str, schema: pa.Schema, position: int) -> DataFrame:
        """Up to a position at least, in the columns of this schema."""
        written = self.book.tables.get(table, Table())
        found = [self.stored((each,)) for each in written.history]
        if position > self.book.position:
            found += self._since(table, written.current, position)
        else:
            found += [self.stored((each,)) for each in written.current]
        nothing = versions.inserted(self.typed(table, schema, 0, -1))
        return versions.together(versions.shaped(each, schema) for each in found or [nothing])

    def _since(self, table: str, current: tuple[str, ...], position: int) -> Iterator[DataFrame]:
        """The versions that have come of what was written as current."""
        there = self.stored(current) if current else None
        for stretch in self.stretches(table, self.first_unwritten, position):
            if stretch.is_retold and there is not None:
                yield versions.ended(there, stretch.first)
                there = None
            made = versions.versions(self.followed(table, there, stretch))
            if stretch.last == position:
                yield made
            else:
                yield made.where(f.col(versions.TO).isNotNull())
                there = made.where(f.col(versions.TO).isNull())

    def known_columns(self, table: str, position: int) -> list[tuple[str, str]]:
        """After a position; or when it was there for the last time."""
        return self.columns(table, position) or self.columns(table, self.last_seen(table, position))

    def columns(self, table: str, position: int) -> list[tuple[str, str]]:
        return self.asked(lambda archive: archive.columns(table, position))

    def last_seen(self, table: str, last: int) -> int:
        return self.asked(lambda archive: archive.last_seen(table, last))

    def _shape(self, table: str, position: int) -> tuple[str, pa.Schema]:
        """Its name as it is written, and its columns after a position."""
        known = self.asked(lambda archive: archive.tables(position)) if self.archive.last else {}
        name = source_table.found_in(known, table)
        if name is None:
            there = ", ".join(sorted(known)) or "none"
            raise NoTable(f"there is no table {table} after position {position}; there is {there}")
        if left_out := self.book.tables.get(name, Table()).left_out:
            raise NoTable(f"{name} is left out, {left_out}: ask its changes")
        columns = self.columns(name, position)
        if clashing := versions.clashing(columns):
            raise NoTable(
                f"{name} has columns that are named like ours, or like each other ({', '.join(clashing)}): "
                "ask its changes"
            )
        return name, source_table.schema_of(columns)
