"""The farm: many runs on all cores. Every worker has a hash seed of its own, so chance that leaks from Python shows.

A worker plays batches and judges each batch in one go; only reports come back, and rows only when they are asked for.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType

from greenline.kernel.evidence import Row
from greenline.simulation.plan import Plan
from greenline.simulation.play import End, Run, play
from greenline.simulation.subjects import SUBJECTS
from greenline.spec.judge import Broken, Judge, by_run
from greenline.trace.stream import SUFFIX, TraceWriter
from greenline.trace.tables import to_parquet, to_table

BATCH = 20
HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True)
class Report:
    """What one run came to, without its rows."""

    plan: Plan
    trace_hash: str
    end: End
    broken: list[Broken]
    counts: dict[str, int]
    hash_of_a_name: int = field(default_factory=lambda: hash("p"))
    """How the process that played it hashes strings: workers differ in it on purpose."""
    rows: list[Row] = field(default_factory=list)
    """Only of a run that was asked for them."""


@dataclass(frozen=True)
class Batch:
    plans: tuple[Plan, ...]
    trace: Path | None = None
    """Where to leave the trace of these runs."""
    keep_rows: bool = False
    """Bring the rows back."""
    with_packets: bool = False
    """Put every packet into the trace as well."""


class Judging:
    """Plays and judges; keeps one judge for each set of rules."""

    def __init__(self) -> None:
        self._judges: dict[tuple[str, ...], Judge] = {}

    def reports(self, batch: Batch) -> list[Report]:
        runs = [play(plan, batch.with_packets) for plan in batch.plans]
        if batch.trace is not None:
            leave_trace(batch.trace, runs)
        rules = SUBJECTS[batch.plans[0].core].rules
        if rules not in self._judges:
            self._judges[rules] = Judge(rules)
        broken = by_run(self._judges[rules].broken(to_table((run.plan.run, run.rows) for run in runs)))
        return [
            Report(
                run.plan,
                run.trace_hash,
                run.end,
                broken.get(run.plan.run, []),
                dict(sorted(run.counts.items())),
                rows=run.rows if batch.keep_rows else [],
            )
            for run in runs
        ]


def leave_trace(stream: Path, runs: list[Run]) -> None:
    """Write the runs as a node would, and turn them into Parquet; the stream has then served its purpose."""
    with TraceWriter(stream, runs[0].plan.run) as writer:
        for run in runs:
            writer.change_run(run.plan.run)
            writer.extend(run.rows)
    to_parquet(stream)
    stream.unlink()


def batches(plans: Iterable[Plan], trace: Path | None, size: int = BATCH) -> Iterator[Batch]:
    pending: list[Plan] = []
    for plan in plans:
        pending.append(plan)
        if len(pending) == size:
            yield _batch(pending, trace)
            pending = []
    if pending:
        yield _batch(pending, trace)


def _batch(plans: list[Plan], trace: Path | None) -> Batch:
    return Batch(tuple(plans), None if trace is None else trace / f"{plans[0].run}{SUFFIX}")


class WorkerFailed(Exception):
    """A worker could not do its work; the message says why."""


class RunFailed(WorkerFailed):
    """Something was raised while it was done."""


class Farm:
    """So many worker processes. Use it in a `with`."""

    def __init__(self, workers: int) -> None:
        self._context = get_context("spawn")
        self._connections: list[Connection] = []
        self._workers: list[SpawnProcess] = []
        resource_tracker.ensure_running()  # it would unblock interrupts if it were started with the first worker
        try:
            with _interrupts_later():
                for place in range(workers):
                    self._start(place + 1)
        except BaseException:
            self._end(at_once=True)
            raise

    def _start(self, hash_seed: int) -> None:
        here, there = self._context.Pipe()
        before = os.environ.get(HASH_SEED)
        os.environ[HASH_SEED] = str(hash_seed)
        try:
            worker = self._context.Process(target=_work, args=(there,), daemon=True)
            worker.start()
        finally:
            if before is None:
                del os.environ[HASH_SEED]
            else:
                os.environ[HASH_SEED] = before
        there.close()
        self._connections.append(here)
        self._workers.append(worker)

    def _end(self, at_once: bool) -> None:
        """Workers end when their connection does; at once: in the middle of a batch that nobody waits for."""
        for connection in self._connections:
            connection.close()
        for worker in self._workers:
            if at_once:
                worker.terminate()
            worker.join()

    def __enter__(self) -> Farm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(at_once=error is not None)

    def each(self, work: Iterable[Batch]) -> Iterator[list[Report]]:
        """The reports of every batch, from whichever worker was free, in the order in which they are done."""
        todo = iter(work)
        busy: list[Connection] = []
        for connection in self._connections:
            if (batch := next(todo, None)) is not None:
                connection.send(batch)
                busy.append(connection)
        while busy:
            for ready in wait(busy):
                assert isinstance(ready, Connection)
                reports = _received(ready)
                if (batch := next(todo, None)) is not None:
                    ready.send(batch)
                else:
                    busy.remove(ready)
                yield reports

    def everywhere(self, batch: Batch) -> list[list[Report]]:
        """The reports of one batch from every worker: they must be the same. One of them leaves the trace."""
        for place, connection in enumerate(self._connections):
            connection.send(replace(batch, trace=None if place else batch.trace))
        return [_received(connection) for connection in self._connections]


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """An interrupt is ours to handle, and not while a worker is half started.

    Workers inherit the mask and never see one. It is not enough for us: another thread may take the signal.
    """
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def _received(connection: Connection) -> list[Report]:
    try:
        answer = connection.recv()
    except EOFError:
        raise WorkerFailed("it died; was it killed, or out of memory?") from None
    if isinstance(answer, WorkerFailed):
        raise answer
    reports: list[Report] = answer
    return reports


def _work(connection: Connection) -> None:
    """A worker's life: batches in, reports out, until the farm is closed."""
    judging = Judging()
    while True:
        try:
            batch = connection.recv()
        except (EOFError, OSError):
            return  # the farm is closed, or gone
        try:
            answer: object = judging.reports(batch)
        except Exception as error:  # noqa: BLE001 - it is the farm's to tell
            answer = RunFailed(f"{type(error).__name__}: {error}")
        try:
            connection.send(answer)
        except OSError:
            return  # the farm is gone
