"""Certifying at scale: the certificate of order, file by file, run by run, a long run as a stream.

A file holds the steps (`spec.certificate`) of whole runs, sorted. Short runs are certified together in memory; of a
run that is longer than `SPAN`, every process's chain is read at its own pace, so that only what is under way is held,
and eight bytes a step for what is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from greenline.spec.certificate import CARRIED, SCHEMA, Step, certificate, chains_by_run, times_of_a_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPAN = 250_000
"""Steps that are held in memory at once."""

BATCH = 16_384
ROW_GROUP_BYTES = 4 << 20
"""Small row groups: a chain is read from the middle of a file, and next to all the others."""

FORMAT = "greenline-certificate"


@dataclass(frozen=True)
class Chain:
    """The steps of one process of a run: these rows of a file."""

    run: str
    process: str
    begin: int
    end: int


def certified(path: Path, span: int = SPAN) -> Iterator[pa.RecordBatch]:
    """The certificate of the runs in this file."""
    together: list[Chain] = []
    for _, group in groupby(_chains(path), key=lambda chain: chain.run):
        chains = list(group)
        if together and chains[-1].end - together[0].begin > span:
            yield from _in_memory(path, together)
            together = []
        if chains[-1].end - chains[0].begin > span:
            yield from _streamed(path, chains)
        else:
            together += chains
    if together:
        yield from _in_memory(path, together)


def _in_memory(path: Path, chains: Sequence[Chain]) -> list[pa.RecordBatch]:
    batches = list(_rows(path, chains[0].begin, chains[-1].end))
    found: list[pa.RecordBatch] = certificate(pa.Table.from_batches(batches)).to_batches()
    return found


def _streamed(path: Path, chains: Sequence[Chain]) -> Iterator[pa.RecordBatch]:
    before, cut, order = times_of_a_run(lambda: [_steps(path, chain) for chain in chains])
    for number, chain in enumerate(chains):
        times = [None if column is None else column[number] for column in (before, cut, order)]
        done = 0
        for batch in _rows(path, chain.begin, chain.end, ["n", *CARRIED]):
            part = slice(done, done + len(batch))
            columns = [
                pa.nulls(len(batch), pa.int64()) if each is None else pa.array(each[part], pa.int64()) for each in times
            ]
            names = [pa.repeat(pa.scalar(name, pa.string()), len(batch)) for name in (chain.run, chain.process)]
            yield pa.RecordBatch.from_arrays([*names, *batch.columns, *columns], schema=SCHEMA)
            done += len(batch)


def _steps(path: Path, chain: Chain) -> Iterator[Step]:
    for batch in _rows(path, chain.begin, chain.end, ["sort", "name", "times", "needs"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _chains(path: Path) -> Iterator[Chain]:
    """Its chains, as they follow each other."""
    last: Chain | None = None
    row = 0
    for batch in _rows(path, 0, None, ["run", "process"]):
        runs, processes = pa.chunked_array([batch.column(0)]), pa.chunked_array([batch.column(1)])
        for begin, end in (bounds for chains in chains_by_run(runs, processes) for bounds in chains):
            here = Chain(runs[begin].as_py(), processes[begin].as_py(), row + begin, row + end)
            if last is not None and (last.run, last.process) == (here.run, here.process):
                last = Chain(last.run, last.process, last.begin, here.end)
                continue
            if last is not None:
                yield last
            last = here
        row += len(batch)
    if last is not None:
        yield last


def _rows(path: Path, begin: int, end: int | None, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """These rows of a file, without what stands before and after their row groups."""
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
        lengths = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        starts = list(accumulate(lengths, initial=0))
        end = starts[-1] if end is None else end
        groups = [number for number in range(len(lengths)) if starts[number] < end and starts[number + 1] > begin]
        if not groups:
            return
        row = starts[groups[0]]
        for batch in file.iter_batches(BATCH, row_groups=groups, columns=columns):
            first, last = max(begin - row, 0), min(end - row, len(batch))
            row += len(batch)
            if first < last:
                yield batch.slice(first, last - first)
            if row >= end:
                return


def register(session: SparkSession) -> None:
    """`format(FORMAT)`: the certificate of the files in a directory, a task each."""
    from greenline.pipeline.certifying_source import Certificates

    session.dataSource.register(Certificates)
