"""One attempt at one partition of a load: rows are cut into batches, and each batch is an action (`sink_ledger`).

Some batches are on their way at a time, and no more: what the cluster has not decided holds up what Spark computes.
They are asked for in order, and of those after one that is not done none is done either, since the ledger does not
stand where they begin. So when another attempt was first, or nobody can tell, all that is on its way is waited for, the
ledger is read, and what is left is sent again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pyarrow as pa

from greenline.client import Client, DatabaseError, Error, OutcomeUnknown, SerializationFailure, TimedOut, Written
from greenline.client.answers import failure_of
from greenline.kernel.statements import encode
from greenline.pipeline import sink_ledger, sink_values
from greenline.pipeline.sink_ledger import Load, Standing
from greenline.pipeline.sink_values import Row, Unfit

MOST_BYTES = 900_000
"""Of a batch's rows, and of the words of SQL around them, unless it is one: nodes take actions of a million."""
ON_THEIR_WAY = 8
_SHOWN = 40
"""Characters of a value, in an error."""


class Stopped(Exception):
    """The load stops here: where and why, what is loaded already and stays, and how to go on."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What a task leaves to the driver: the rows after its full batches, fewer than one has."""

    partition: int
    before: Standing
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Batch:
    rows: Sequence[Row]
    before: Standing
    after: Standing


class Partition:
    def __init__(self, db: Client, load: Load, number: int, timeout: float) -> None:
        self._db = db
        self._load = load
        self._number = number
        self._timeout = timeout
        self._done = load.beginning
        """Where the ledger stands, as far as is known: perhaps ahead of us, if another attempt was here."""
        self._waiting: deque[tuple[Batch, asyncio.Task[Written]]] = deque()

    async def fill(self, arrived: Iterator[pa.RecordBatch]) -> Rest:
        """With all full batches of these. Raises `Stopped`."""
        async with self._stopping():
            before = self._load.beginning
            rest: Sequence[Row] = ()
            async for rows, is_full in self._cut(arrived):
                if not is_full:
                    rest = rows
                    break
                batch = Batch(rows, before, before.after(rows, is_last=False))
                before = batch.after
                await self._put(batch)
            await self._settle(0)
        return Rest(self._number, before, rest)

    async def finish(self, rest: Rest) -> int:
        """At the driver, once the task came to its end; so many rows are all of it. Raises `Stopped`."""
        async with self._stopping():
            batch = Batch(rest.rows, rest.before, rest.before.after(rest.rows, is_last=True))
            await self._put(batch)
            await self._settle(0)
            if batch.after.batches < self._done.batches:
                raise self._differs()
        return batch.after.rows

    @asynccontextmanager
    async def _stopping(self) -> AsyncIterator[None]:
        """From where the ledger stands, until something is in the way."""
        try:
            self._done = await self._stands()
            yield
        except Error as error:
            raise self._stopped(_because(error, self._timeout)) from error
        except Unfit as error:
            raise self._stopped(str(error)) from error
        finally:
            await self._give_up()

    async def _cut(self, arrived: Iterator[pa.RecordBatch]) -> AsyncIterator[tuple[Sequence[Row], bool]]:
        """Full batches and in the end what is left: the same for the same rows in the same order, however Spark hands
        them over. One is full when the next row would be too many, or too much."""
        rows: list[Row] = []
        size, words = 0, self._load.words_a_row
        # In a thread: what Spark computes may take its time, and the connection must be kept meanwhile.
        while (batch := await asyncio.to_thread(next, arrived, None)) is not None:
            for row in sink_values.rows_of(batch):
                more = len(encode(row)) + words
                if rows and (len(rows) == self._load.rows_in_batch or size + more > MOST_BYTES):
                    yield rows, True
                    rows, size = [], 0
                rows.append(row)
                size += more
        yield rows, False

    # Sending.

    async def _put(self, batch: Batch) -> None:
        if batch.after.batches <= self._done.batches:
            self._check(batch.after)
        else:
            self._send(batch)
            await self._settle(ON_THEIR_WAY - 1)

    def _send(self, batch: Batch) -> None:
        body = self._load.action(self._number, batch.before, batch.after, batch.rows)
        self._waiting.append((batch, asyncio.create_task(self._db.write(body, timeout=self._timeout))))

    async def _settle(self, most: int) -> None:
        """Until no more than so many are on their way."""
        while len(self._waiting) > most:
            batch, task = self._waiting[0]
            try:
                await task
            except (SerializationFailure, OutcomeUnknown):
                await self._go_on_from_ledger()
            except DatabaseError as error:
                if error.position:  # it was decided, and failed
                    raise self._stopped(await self._blame(batch, error)) from error
                raise
            else:
                self._waiting.popleft()
                self._done = batch.after

    async def _go_on_from_ledger(self) -> None:
        """Somebody else was first, or nobody can tell."""
        batches = [batch for batch, _ in self._waiting]
        await asyncio.gather(*(task for _, task in self._waiting), return_exceptions=True)
        self._waiting.clear()
        self._done = await self._stands()
        self._check(batches[0].before)
        for batch in batches:
            self._check(batch.after)
            if batch.after.batches > self._done.batches:
                self._send(batch)
        if self._done.batches < batches[0].before.batches:
            raise self._stopped(f"somebody has set {sink_ledger.LEDGER} back; it must be left alone during a load")

    async def _give_up(self) -> None:
        """Of what is on its way nobody needs to know: the ledger does."""
        tasks = [task for _, task in self._waiting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _stands(self) -> Standing:
        return await sink_ledger.standing(self._db, self._load, self._number, self._timeout)

    # What may go wrong.

    def _check(self, ours: Standing) -> None:
        """Are these the rows that the other attempt had?"""
        if ours.batches == self._done.batches and ours != self._done:
            raise self._differs()

    def _differs(self) -> Stopped:
        return self._stopped(
            "this attempt has other rows, or in another order, than the one before it: the input is not the same each"
            " time it is computed. Write it to files and load those, or repartition by a key and sort within partitions"
        )

    async def _blame(self, batch: Batch, error: DatabaseError) -> str:
        first, last = batch.before.rows + 1, batch.after.rows
        answer = await self._db.ask(self._load.trial(batch.rows), timeout=self._timeout)
        failure = failure_of(answer)
        if failure is None:
            return f"one of its rows {first} to {last} was refused: {error}"
        row = batch.rows[failure.statement]
        return f"its row {first + failure.statement} was refused: {failure.message} ({self._shown(row)})"

    def _shown(self, row: Row) -> str:
        return ", ".join(f"{name}={_short(value)}" for name, value in zip(self._load.columns, row, strict=True))

    def _stopped(self, why: str) -> Stopped:
        return Stopped(
            f"partition {self._number} of the load {self._load.name}: {why}. Its first {self._done.rows} rows are in"
            f' {self._load.table} and stay; the same load with option("load", "{self._load.name}") goes on from there'
        )


def _because(error: Error, timeout: float) -> str:
    if isinstance(error, TimedOut):
        return (
            f"the cluster has not answered for {timeout:g} s: is there a primary component? What was sent may still be"
            ' done, once at most; option("timeout", SECONDS) waits longer'
        )
    return str(error)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
