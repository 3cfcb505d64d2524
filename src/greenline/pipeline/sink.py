"""The sink: a DataFrame becomes rows of a replicated table, through ordinary actions, exactly once.

    df.write.format("greenline").option("at", "p.example:7420").option("table", "readings").mode("append").save()

Each of Spark's partitions loads its rows by itself, but for the last few, which the driver loads when all have come to
their end; `sink_ledger` says why, and why each row is there once, whatever Spark runs again. There is no transaction
around a load: while it runs, and when it stops, what is done is there for everybody. Whoever runs a load again must
have the same rows in the same partitions. If not, it does not end well, and says so: a partition that was begun with
other rows stops, and one that this run does not know of is found in the end.

| option                         |                                                                                    |
|--------------------------------|------------------------------------------------------------------------------------|
| `at`, `user`, `password`, `ca` | the cluster, and who asks (`reaching`): somebody who may write                      |
| `table`                        | where to; columns go by their names                                                |
| `create`                       | `true`: make the table if it is not there                                          |
| `load`                         | the load's name: who runs it again under the same name goes on where it stopped    |
| `partitions`                   | how many there are: a load that is run again with another number is refused at once |
| `batch`                        | rows in an action, 1000 unless said                                                |
| `timeout`                      | seconds that a batch may wait for the cluster, 300 unless said                     |
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from greenline.client import Client
from greenline.pipeline import reaching, sink_ledger
from greenline.pipeline.reaching import BadOption, Reach
from greenline.pipeline.sink_ledger import LEDGER, Load, quoted
from greenline.pipeline.sink_partition import ON_THEIR_WAY, Partition, Rest, Stopped
from greenline.pipeline.sink_values import Unfit, declared

OPTIONS = (*reaching.OPTIONS, "table", "create", "load", "partitions", "batch", "timeout")
ROWS_IN_BATCH = 1000
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Filled(WriterCommitMessage):
    """What a task tells the driver."""

    rest: Rest


class Sink(DataSourceArrowWriter):
    def __init__(self, reach: Reach, load: Load, timeout: float) -> None:
        self.reach = reach
        self.load = load
        self.timeout = timeout

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Filled:
        """In a worker: one attempt at one partition."""
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        return Filled(asyncio.run(self._fill(task.partitionId(), iterator)))

    async def _fill(self, partition: int, iterator: Iterator[pa.RecordBatch]) -> Rest:
        async with self.reach.connected(connect_timeout=self.timeout) as db:
            return await Partition(db, self.load, partition, self.timeout).fill(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """At the driver: all tasks have come to their end."""
        asyncio.run(self._finish([message.rest for message in messages if isinstance(message, Filled)]))

    async def _finish(self, rests: list[Rest]) -> None:
        """What they left, and then a look at the whole: is there nothing that this run does not know of?"""
        together = asyncio.Semaphore(ON_THEIR_WAY)

        async def finish(rest: Rest) -> int:
            async with together:
                return await Partition(db, self.load, rest.partition, self.timeout).finish(rest)

        async with self.reach.connected(connect_timeout=self.timeout) as db:
            if self.load.partitions not in {None, len(rests)}:
                raise Stopped(f"{self.load.partitions} partitions were announced, and {len(rests)} came")
            ours = sum(await asyncio.gather(*map(finish, rests)))
            loaded = await sink_ledger.total(db, self.load.name, self.timeout)
        if ours != loaded:
            raise Stopped(
                f"the load {self.load.name} has {loaded} rows in {self.load.table}, but this run has {ours}, in"
                f" {len(rests)} partitions: it was begun with others. {LEDGER} says what each partition has"
            )


def writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> Sink:
    """At the driver, before anything is loaded: all that can be wrong by then is said here. Raises `BadOption`."""
    reaching.check_known(options, OPTIONS)
    if overwrite:
        raise BadOption(
            'a load adds to a table: write mode("append"), and delete what is to go in an action of its own'
        )
    try:
        types = declared(schema)
    except Unfit as error:
        raise BadOption(str(error)) from None
    load = Load(
        name=options.get("load") or secrets.token_hex(8),
        table=_table(options),
        columns=tuple(types),
        rows_in_batch=_number(options, "batch") or ROWS_IN_BATCH,
        partitions=_number(options, "partitions"),
    )
    made = Sink(reaching.reach(options), load, float(_number(options, "timeout") or TIMEOUT_S))
    asyncio.run(_begin(made, types, is_created=_is_true(options, "create")))
    return made


async def _begin(sink: Sink, types: Mapping[str, str], *, is_created: bool) -> None:
    load = sink.load
    async with sink.reach.connected() as db:
        if is_created and not await sink_ledger.columns(db, load.table, sink.timeout):
            columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
            made = f"CREATE TABLE IF NOT EXISTS {quoted(load.table)} ({columns})"
            await sink_ledger.begin_with(db, load, made, sink.timeout)
        await _check_columns(db, load, sink.timeout)
        if not await sink_ledger.begin(db, load, sink.timeout):
            raise BadOption(
                f"there is a load {load.name} already, and it was begun with another table, other columns, batches or"
                " partitions: run it as it was begun, or give this one another name"
            )


async def _check_columns(db: Client, load: Load, timeout: float) -> None:
    there = await sink_ledger.columns(db, load.table, timeout)
    if not there:
        raise BadOption(f'there is no table {load.table}: create it first, or with option("create", "true")')
    known = {name.lower() for name in there}
    if unknown := [name for name in load.columns if name.lower() not in known]:
        raise BadOption(f"{load.table} has no column {', '.join(unknown)}: it has {', '.join(there)}")
    if len({name.lower() for name in load.columns}) < len(load.columns):
        raise BadOption(f"some of {', '.join(load.columns)} are the same to SQL, which knows no upper and lower case")


def _table(options: Mapping[str, str]) -> str:
    table = options.get("table", "")
    if not table:
        raise BadOption('where to? option("table", NAME)')
    if table.lower() == LEDGER:
        raise BadOption(f"{LEDGER} is where loads keep their accounts: choose another table")
    return table


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise BadOption(f"{name}={text}: write a whole number from 1")
    return int(text)


def _is_true(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise BadOption(f"{name}={text}: write true or false")
    return text == "true"
