"""The ledger: an ordinary replicated table that says how far each partition of each load is, and makes it exactly once.

Spark runs a task again when it failed, and twice at the same time when it is slow; and whoever runs a load whose driver
was killed runs all of it again. So every batch of rows is one action that does two things or none: it moves the
partition's row of the ledger from batch n-1 to n, and inserts the rows. The action is a conflict, and does nothing,
unless the ledger stood at n-1. Whichever attempt is ordered first does batch n; all others are told, read where the
ledger stands and go on from there.

Sessions would not do: what is kept for them is forgotten when they expire, and a load may be taken up a month later.
What two attempts present as batch n may differ, if the input has no order of its own: then the session's answer would
be about other rows. The ledger has a digest of all rows so far, chained from batch to batch, and the action is a
conflict also unless it continues that chain. Two attempts that differ are told apart at the first batch that does.

A worker cannot tell whether its input has ended or was lost: Spark closes the stream either way. But what came before
is a beginning of the whole in both cases. So a worker loads full batches only, cut so that the same rows always make
the same batch, and gives what is left to the driver, which hears of it only if the task came to its end. The driver
loads it as the last batch of the partition, which says that it is the last: nothing continues it.

A load's rows of the ledger stay when it is done: a late twin of a task finds out by them that it is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from greenline.client import Client, work
from greenline.kernel.actions import digest_of
from greenline.kernel.statements import Result, Statement, encode
from greenline.pipeline.sink_values import Row

LEDGER = "spark_loads"
WHOLE = -1
"""In the place of a partition: what the load as a whole is."""
_VALUES = 500
"""At most, in one statement: a text that is prepared once, for many rows at a time."""
_ONE_CHANGE = Result(changes=1).seen

CREATE = f"""CREATE TABLE IF NOT EXISTS {LEDGER} (
    load TEXT NOT NULL, partition INTEGER NOT NULL,
    batches INTEGER NOT NULL, "rows" INTEGER NOT NULL, is_filled INTEGER NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (load, partition)
) WITHOUT ROWID"""
_BEGIN = f"INSERT INTO {LEDGER} VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_MOVE = (
    f'UPDATE {LEDGER} SET batches = ?, "rows" = ?, is_filled = ?, digest = ?'
    " WHERE load = ? AND partition = ? AND batches = ? AND digest = ?"
)
_STANDS = f'SELECT batches, "rows", is_filled, digest FROM {LEDGER} WHERE load = ? AND partition = ?'
_COLUMNS = "SELECT name FROM pragma_table_info(?)"
_KNOWN = f"SELECT load FROM {LEDGER} WHERE load = ? AND partition = ?"
_TOTAL = f'SELECT coalesce(sum("rows"), 0) FROM {LEDGER} WHERE load = ? AND partition >= 0'


class Standing(msgspec.Struct, frozen=True):
    """How far a partition is: so many batches, so many rows, which come to this."""

    batches: int
    rows: int
    is_filled: bool
    """These are all: what came after them would be of another load."""
    digest: bytes

    def after(self, rows: Sequence[Row], is_last: bool) -> Standing:
        digest = digest_of(self.digest + encode((rows, is_last)))
        return Standing(self.batches + 1, self.rows + len(rows), is_last, digest)


class Load(msgspec.Struct, frozen=True):
    """What a load is, the same for all attempts at it."""

    name: str
    table: str
    columns: tuple[str, ...]
    rows_in_batch: int
    partitions: int | None
    """If it was said."""

    @property
    def beginning(self) -> Standing:
        """Also the digest's: what is cut otherwise, or goes elsewhere, continues no chain."""
        digest = digest_of(encode((self.table, self.columns, self.rows_in_batch, self.partitions)))
        return Standing(0, 0, False, digest)

    def action(self, partition: int, before: Standing, after: Standing, rows: Sequence[Row]) -> bytes:
        """Move the ledger, and insert."""
        return work.body((self._move(partition, before, after), *self._inserts(rows)), work.moment())

    @property
    def words_a_row(self) -> int:
        """Bytes of SQL for a row: its share of a statement's beginning, and its places."""
        together = self._rows_in_statement
        return -(-len(self._insert(together).encode()) // together)

    @property
    def _rows_in_statement(self) -> int:
        return max(1, _VALUES // len(self.columns))

    def trial(self, rows: Sequence[Row]) -> bytes:
        """What would become of them one by one? Tells which of them is to blame."""
        return work.trial(tuple(Statement(self._insert(1), row) for row in rows), work.moment())

    def _move(self, partition: int, before: Standing, after: Standing) -> Statement:
        new = after.batches, after.rows, after.is_filled, after.digest
        if before.batches == 0:
            return work.statement(_BEGIN, (self.name, partition, *new), _ONE_CHANGE)
        return work.statement(_MOVE, (*new, self.name, partition, before.batches, before.digest), _ONE_CHANGE)

    def _inserts(self, rows: Sequence[Row]) -> list[Statement]:
        together = self._rows_in_statement
        several = [rows[start : start + together] for start in range(0, len(rows), together)]
        return [Statement(self._insert(len(some)), tuple(chain.from_iterable(some))) for some in several]

    def _insert(self, count: int) -> str:
        names = ", ".join(map(quoted, self.columns))
        places = f"({', '.join('?' * len(self.columns))})"
        return f"INSERT INTO {quoted(self.table)} ({names}) VALUES {', '.join([places] * count)}"


async def begin(db: Client, load: Load, timeout: float) -> bool:
    """Enter the load, or find it. False: it is there already, and is another."""
    await db.execute(CREATE, timeout=timeout)
    await db.execute(_BEGIN, _whole(load), timeout=timeout)
    return await standing(db, load, WHOLE, timeout) == load.beginning


async def begin_with(db: Client, load: Load, made: str, timeout: float) -> None:
    """Enter the load together with the table that is made for it: so it is known whose that is."""
    await db.execute(CREATE, timeout=timeout)
    statements = work.statement(made), work.statement(_BEGIN, _whole(load))
    await db.write(work.body(statements, work.moment()), timeout=timeout)


def _whole(load: Load) -> tuple[object, ...]:
    return load.name, WHOLE, 0, 0, False, load.beginning.digest


async def is_known(db: Client, name: str, timeout: float) -> bool:
    """Has this load begun?"""
    is_kept = await columns(db, LEDGER, timeout)
    return bool(is_kept and await db.query(_KNOWN, (name, WHOLE), timeout=timeout))


async def columns(db: Client, table: str, timeout: float) -> list[str]:
    """None, if there is no such table."""
    return [name for (name,) in await db.query(_COLUMNS, (table,), timeout=timeout)]


async def standing(db: Client, load: Load, partition: int, timeout: float) -> Standing:
    found = await db.query(_STANDS, (load.name, partition), timeout=timeout)
    for batches, rows, is_filled, digest in found:
        return Standing(batches, rows, bool(is_filled), digest)
    return load.beginning


async def total(db: Client, name: str, timeout: float) -> int:
    """Rows of this load that are in the table."""
    found = await db.query(_TOTAL, (name,), timeout=timeout)
    return int(found.rows[0][0])


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
