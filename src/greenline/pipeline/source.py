"""The source: the ordered log in Spark, by `spark.read.format("greenline")` and `spark.readStream.format("greenline")`.

    spark.read.format("greenline").option("at", "p.example:7420,q.example:7420").option("user", "ada").load()
    spark.readStream.format("greenline").option("at", "greenline-local").option("archive", "kept") \\
        .option("table", "accounts").load()

Options: `at` (addresses, or the directory of a local cluster), `user`, `password` (or $GREENLINE_PASSWORD), `ca`; or
`files` (the data directory of a node that does not run); `archive` (what a follower keeps; it also serves what replicas
have discarded); `schema` (`bundles`, `actions` or `changes`) or `table`; `first`, `last`, `per_partition`, `per_batch`,
`patience`. Any user may read the log; only administrators are shown what passwords are checked against.

Offsets are green positions, with what the order comes to there: so a checkpoint is continued by the same order or not
at all. A partition is a range of positions, and read from whoever has it at the time. After a kill Spark reads a range
again that it had written down, and gets the same rows.
"""

# Spark calls them so.
# ruff: noqa: N802

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from greenline.pipeline import source_parts
from greenline.pipeline.reading import AnotherOrder, NotRead, Place
from greenline.pipeline.source_options import Asked, asked
from greenline.pipeline.source_parts import Part

if TYPE_CHECKING:
    import pyarrow as pa

Offset = dict[str, Any]
_PAUSE_S = 0.2
_ANOTHER = (
    "this is another cluster, or it was restored from a backup since. Go back to the cluster of the checkpoint, or "
    "begin with a new checkpoint"
)


class Greenline(DataSource):
    @classmethod
    def name(cls) -> str:
        return "greenline"

    def schema(self) -> StructType:
        with closing(source_parts.part(asked(self.options))) as part:
            return from_arrow_schema(part.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(asked(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(asked(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from greenline.pipeline import sink

        return sink.writer(self.options, schema, overwrite)


@dataclass(frozen=True)
class Range(InputPartition):
    """From one place of the order to another."""

    after: Place
    to: Place


class Narrowing(Greenline):
    """For sessions that tell sources what is looked for, as ours do (`spark.sql.python.filterPushdown.enabled`): in
    any other Spark refuses a reader that would listen."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return NarrowingReader(asked(self.options), schema)


class Reader(DataSourceReader):
    """A batch: the order as it is when the query is planned."""

    def __init__(self, asked: Asked, schema: StructType) -> None:
        self._asked = asked
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._first = asked.first
        self._last = asked.last

    def partitions(self) -> Sequence[InputPartition]:
        with closing(source_parts.part(self._asked, self._schema)) as part:
            newest = part.newest(self._asked.last)
            if self._asked.last is not None and newest.position < self._asked.last:
                raise NotRead(
                    f"the order ends with position {newest.position}, and last={self._asked.last} was asked for: leave "
                    "`last` out, or come back later"
                )
            last = newest.position if self._last is None else min(self._last, newest.position)
            return _planned(part, Place(self._first - 1), Place(last), self._asked.per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._asked, self._schema, partition)


class NarrowingReader(Reader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Positions that nobody asks for are not read. Spark looks at what is left all the same."""
        position = (source_parts.position_of(self._asked),)
        for each in filters:
            match each:
                case EqualTo(attribute, int(value)) if attribute == position:
                    self._narrow(value, value)
                case GreaterThan(attribute, int(value)) if attribute == position:
                    self._narrow(value + 1, None)
                case GreaterThanOrEqual(attribute, int(value)) if attribute == position:
                    self._narrow(value, None)
                case LessThan(attribute, int(value)) if attribute == position:
                    self._narrow(None, value - 1)
                case LessThanOrEqual(attribute, int(value)) if attribute == position:
                    self._narrow(None, value)
            yield each

    def _narrow(self, first: int | None, last: int | None) -> None:
        if first is not None:
            self._first = max(self._first, first)
        if last is not None:
            self._last = last if self._last is None else min(self._last, last)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: the order as it grows."""

    def __init__(self, asked: Asked, schema: StructType) -> None:
        self._asked = asked
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._part = source_parts.part(asked, self._schema)
        self._target: int | None = asked.last

    def initialOffset(self) -> Offset:
        (place,) = self._part.places([self._asked.first - 1])
        return _written(place)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._asked.per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        newest = self._part.newest(self._asked.last).position
        self._target = newest if self._asked.last is None else min(newest, self._asked.last)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        begin = _place(start)
        most = None if isinstance(limit, ReadAllAvailable) else begin.position + self._most(limit)
        wanted = min((each for each in (most, self._target) if each is not None), default=None)
        newest = self._reaching(begin, wanted)
        end = newest if wanted is None else max(begin.position, min(newest, wanted))
        here, there = self._part.places([begin.position, end])
        if begin.digest and here.digest and begin.digest != here.digest:
            raise AnotherOrder(
                f"the checkpoint stands at position {begin.position}, where the order came to {begin.digest.hex()}; "
                f"here it comes to {here.digest.hex()}: {_ANOTHER}"
            )
        return start if end == begin.position else _written(there)

    def _most(self, limit: ReadLimit) -> int:
        return limit.max_rows if isinstance(limit, ReadMaxRows) else self._asked.per_batch

    def _reaching(self, begin: Place, wanted: int | None) -> int:
        """How far the order goes by now. Who tells us may be behind for a while; who stays so has another order."""
        newest, grown = -1, time.monotonic()
        while True:
            before, newest = newest, self._part.newest(wanted).position
            if newest >= begin.position:
                return newest
            if newest > before:
                grown = time.monotonic()
            if time.monotonic() - grown > self._asked.patience:
                if not begin.digest:
                    raise NotRead(
                        f"the order ends with position {newest}, and first={begin.position + 1} was asked for: leave "
                        "`first` out, or come back later"
                    )
                raise AnotherOrder(
                    f"the checkpoint stands at position {begin.position}, and the order here ends with {newest} for "
                    f"{self._asked.patience:g} s: {_ANOTHER}"
                )
            time.sleep(_PAUSE_S)

    def reportLatestOffset(self) -> Offset:
        return {"position": self._part.known}

    def stop(self) -> None:
        self._part.close()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return _planned(self._part, _place(start), _place(end), self._asked.per_partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._asked, self._schema, partition)


def _planned(part: Part, after: Place, to: Place, size: int) -> list[InputPartition]:
    """Ranges that follow each other, each with what the order comes to at both its ends."""
    if to.position <= after.position:
        return []
    cuts = part.cuts(after.position, to.position, size)
    places = [after, *part.places(cuts), to]
    if not after.digest or not to.digest:
        first, last = part.places([after.position, to.position])
        places[0], places[-1] = (after if after.digest else first), (to if to.digest else last)
    return [Range(one, other) for one, other in pairwise(places)]


def _read(asked: Asked, schema: pa.Schema, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, Range):  # Spark makes a partition of its own where there is none
        yield from source_parts.part(asked, schema).read(partition.after, partition.to)


def _written(place: Place) -> Offset:
    return {"position": place.position, "digest": place.digest.hex()}


def _place(offset: Offset) -> Place:
    return Place(int(offset["position"]), bytes.fromhex(str(offset.get("digest", ""))))
