"""Actions and changes: from the archive that a follower keeps. If nobody keeps it yet, whoever plans a query does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from greenline.database.sqlite.rows import folded
from greenline.pipeline import rows, source_table
from greenline.pipeline.archive import Archive, InUse
from greenline.pipeline.changes import CHANGES
from greenline.pipeline.reaching import BadOption
from greenline.pipeline.reading import Chain, Discarded, NotRead, Order, Place, Replicas
from greenline.pipeline.source_options import ACTIONS, Asked

if TYPE_CHECKING:
    from greenline.pipeline.follower import Follower, Stands

_ROWS_AT_ONCE = 16_384


class Kept:
    """`schema` is what Spark expects of a table, once it has asked."""

    def __init__(
        self, asked: Asked, archive: Archive, told: Order | None = None, schema: pa.Schema | None = None
    ) -> None:
        self._asked = asked
        self._told = told
        self._expected = schema
        self._archive = archive
        self._follower: Follower | None = None
        self._grown = time.monotonic()
        """When the archive was last seen to grow, if another writes it."""
        self._is_in_use = False

    @property
    def schema(self) -> pa.Schema:
        if self._asked.schema == ACTIONS:
            return rows.ACTIONS
        if self._asked.table is None:
            return CHANGES
        return self._expected or self._table_schema(self._asked.table)

    def _table_schema(self, table: str) -> pa.Schema:
        """As the table is declared at `last`, or by now."""
        if (columns := self._columns(table)) is None:
            self.newest(self._asked.last)
            columns = self._columns(table)
        if columns is None:
            columns = self._last_columns(table)
        if columns is None:
            known = sorted(self._archive.tables(self._archive.last)) if self._archive.last else []
            raise BadOption(
                f"there is no table {table} after position {self._asked.last or self._archive.last}; "
                f"there is {', '.join(known) or 'none'}"
            )
        if clashing := source_table.clashing(columns):
            raise BadOption(
                f"{table} has columns that are named like those of its changes, or like each other "
                f"({', '.join(clashing)}): leave `table` out, and read the changes of all, by "
                'option("schema", "changes")'
            )
        return source_table.schema_of(columns)

    def _columns(self, table: str) -> list[tuple[str, str]] | None:
        position = self._asked.last or self._archive.last
        if not 0 < position <= self._archive.last or position < self._archive.base:
            return None
        tables = self._archive.tables(position)
        name = source_table.found_in(tables, table)
        return None if name is None else [(column.name, column.declared) for column in tables[name]]

    def _last_columns(self, table: str) -> list[tuple[str, str]] | None:
        """Of one that is gone by then: what it held, and that it is gone, is still to be told."""
        archive, last = self._archive, self._asked.last or self._archive.last
        tables = archive.tables(archive.last_seen(table, last)) if self._archive.base <= last <= archive.last else {}
        name = source_table.found_in(tables, table)
        return None if name is None else [(column.name, column.declared) for column in tables[name]]

    # How far it goes.

    @property
    def known(self) -> int:
        return self._archive.last if self._follower is None else self._follower.newest

    def newest(self, wanted: int | None) -> Place:
        if self._told is not None and (wanted is None or wanted > self._archive.last):
            self._follow(self._told, wanted)
        self._archive.refresh()
        last = self._archive.last
        return Place(last, self._archive.digest_at(last))

    def _follow(self, told: Order, wanted: int | None) -> None:
        """Unless somebody else does: then what they write is waited for."""
        before = self._archive.last
        if self._is_in_use:
            self._archive.refresh()
            if self._archive.last > before:
                self._grown = time.monotonic()
            if time.monotonic() - self._grown < self._asked.patience:
                return
        if self._follower is None:
            from greenline.pipeline.follower import Follower  # few need one

            try:
                self._follower = Follower(self._archive, told, stands=self._stands(told), patience_s=0.0)
            except InUse:
                self._is_in_use, self._grown = True, time.monotonic()
                return
            self._is_in_use = False
        self._follower.advance(None if wanted is None else wanted - self._follower.position)

    def _stands(self, told: Order) -> Stands | None:
        """Only administrators are told all that the state is made from."""
        if self._asked.reach is None or not isinstance(told, Replicas) or told.role() != "admin":
            return None
        from greenline.pipeline.follower import asks

        return asks(self._asked.reach)

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def places(self, positions: Sequence[int]) -> list[Place]:
        return [Place(each, self._digest(each)) for each in positions]

    def _digest(self, position: int) -> bytes:
        try:
            return self._archive.digest_at(position)
        except Discarded:
            return b""

    # What it says.

    def cuts(self, after: int, to: int, size: int) -> list[int]:
        """Between segments."""
        found: list[int] = []
        for path in self._archive.files(self._asked.schema, after + 1, to):
            last = int(path.stem.partition("-")[2])
            if last < to and last - (found[-1] if found else after) >= size:
                found.append(last)
        return found

    def read(self, after: Place, to: Place) -> Iterator[pa.RecordBatch]:
        self._check(after, to)
        position = "position" if self._asked.schema == ACTIONS else "_commit_version"
        first = after.position + 1 if after.position else 0  # where a base may stand
        for path in self._archive.files(self._asked.schema, first, to.position):
            try:
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(_ROWS_AT_ONCE):
                        found = self._wanted(batch, batch.column(position), first, to.position)
                        if found.num_rows:
                            yield found
            except (OSError, pa.ArrowException) as error:
                raise NotRead(f"{path} cannot be read: {error}; bring it back, or make a new archive") from None

    def _check(self, after: Place, to: Place) -> None:
        archive = self._archive
        if to.position > archive.last:
            raise NotRead(f"{archive} ends with position {archive.last}, and {to.position} was to be read from it")
        if self._asked.schema == ACTIONS and after.position < archive.base:
            raise Discarded(
                f"{archive} begins with the state at position {archive.base}, and has no actions before: begin with "
                f'option("first", "{archive.first}")'
            )
        if 0 < after.position < archive.base:
            raise Discarded(
                f"{archive} begins with the state at position {archive.base}: nobody knows what was changed between"
                f" {after.position} and that. Begin anew, with an empty place to write to and a checkpoint of its own:"
                " that is told the whole state first"
            )
        for place in (after, to):
            Chain(Place(place.position, self._digest(place.position)), str(archive)).expect(place)

    def _wanted(self, batch: pa.RecordBatch, positions: pa.Array, first: int, to: int) -> pa.RecordBatch:
        mask = pc.and_(pc.greater_equal(positions, first), pc.less_equal(positions, to))
        if self._asked.table is None:
            return batch.filter(mask).cast(self.schema)
        mask = pc.and_(mask, pc.equal(pc.ascii_lower(batch.column("table")), folded(self._asked.table)))
        return source_table.typed(batch.filter(mask), self.schema)
