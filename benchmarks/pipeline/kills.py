"""Kills: the pipeline and the replicas that it reads from are killed again and again while a load goes on.

BENCH_ACTIONS=20000 BENCH_KILLS=3 BENCH_REPLICA_KILLS=2 python -m benchmarks.pipeline.kills

In the end each position is archived once, and the tables are what the replicas have. Spark takes as long to start as a
cluster takes for the whole load: so a part of it comes each time that the pipeline is there again.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.node.databases import client, until_primary
from tests.pipeline.clusters import keeping

from greenline.cli.local import Local
from greenline.pipeline import progress, session, tables_book
from greenline.pipeline.running import Running, told
from greenline.pipeline.tables import Tables

ACTIONS = int(os.environ.get("BENCH_ACTIONS", "500000"))
KILLS = int(os.environ.get("BENCH_KILLS", "10"))
REPLICA_KILLS = int(os.environ.get("BENCH_REPLICA_KILLS", "5"))
TOGETHER = 200
PATIENCE_S = 300.0
NAMES = "p q r"


def main() -> int:
    if len(sys.argv) == 2:
        asyncio.run(_load(Local(Path(sys.argv[1]))))
        return 0
    with TemporaryDirectory() as place, keeping(Path(place) / "cluster", NAMES) as local:
        into = Path(place) / "into"
        words = [sys.executable, "-m", "benchmarks.pipeline.kills", str(local.place)]
        load = subprocess.Popen(words, stdin=subprocess.PIPE)
        try:
            _kill_again_and_again(local, into, load)
            if load.wait() != 0:
                return 1
        finally:
            load.kill()
        until_primary(local, NAMES)
        return _judged(local, into)


def _kill_again_and_again(local: Local, into: Path, load: subprocess.Popen[bytes]) -> None:
    """A replica at every so many-th time; each is started again at once."""
    assert load.stdin is not None, "it was given one"
    replicas = [NAMES.split()[n % 3] for n in range(REPLICA_KILLS)]
    every = max(1, KILLS // max(1, REPLICA_KILLS))
    for number in range(KILLS):
        stream = _streaming(local, into)
        try:
            _until(stream, lambda: _is_following(into, stream.pid))  # noqa: B023
            before = tables_book.read(into).position
            load.stdin.write(b"go on\n")
            load.stdin.flush()
            _until(stream, lambda: tables_book.read(into).position > before)  # noqa: B023
            if replicas and number % every == 0:
                name = replicas.pop()
                local.kill(name)
                local.restart(name)
            time.sleep(random.uniform(0.0, 2.0))
        finally:
            os.killpg(stream.pid, signal.SIGKILL)
            stream.wait()
        seen = progress.read(into)
        assert seen is not None
        print(f"killed at {seen.order:,}, archived {seen.archived:,}, written {seen.written:,}", flush=True)
    load.stdin.close()


def _streaming(local: Local, into: Path) -> subprocess.Popen[bytes]:
    words = ["pipeline", "stream", "--dir", str(local.place), "--into", str(into)]
    command = [sys.executable, "-m", "greenline.cli.main", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def _is_following(into: Path, pid: int) -> bool:
    seen = progress.read(into)
    return seen is not None and seen.pid == pid


def _until(stream: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert stream.poll() is None, "the stream has ended by itself"
        assert time.monotonic() < until, "the stream does nothing"
        time.sleep(0.05)


def _judged(local: Local, into: Path) -> int:
    spark = session.spark("greenline kills")
    try:
        with Running(spark, into, told({"at": str(local.place)})) as work:
            ended = work.run()
        tables = Tables(spark, into)
        positions = tables.log("bundles").select("position").distinct().count()
        mine = sorted(tuple(row) for row in tables.current("many").select("id", "n").collect())
    finally:
        session.stop()
    theirs = asyncio.run(_rows(local))
    is_right = positions == ended.archived and mine == theirs and len(mine) >= ACTIONS
    print(
        f"{len(mine):,} rows, {len(theirs):,} at a replica; {positions:,} of {ended.archived:,} positions;"
        f" {KILLS} kills of Spark, {REPLICA_KILLS} of replicas: {'equal' if is_right else 'NOT EQUAL'}"
    )
    return 0 if is_right else 1


async def _rows(local: Local) -> list[tuple[int, int]]:
    """Some at a time: an answer may be so large and no larger."""
    found: list[tuple[int, int]] = []
    async with client(local) as db:
        while True:
            last = found[-1][0] if found else 0
            some = await db.query("SELECT id, n FROM many WHERE id > ? ORDER BY id LIMIT 50000", (last,))
            if not some.rows:
                return found
            found += some.rows


async def _load(local: Local) -> None:
    async with client(local) as db:
        await db.execute("CREATE TABLE many (id INTEGER PRIMARY KEY, n INTEGER)")
        part = -(-ACTIONS // KILLS)
        for start in range(0, ACTIONS, TOGETHER):
            if start // part > (start - TOGETHER) // part:
                await asyncio.to_thread(sys.stdin.readline)
            rows = range(start, start + TOGETHER)
            await db.batch([("INSERT INTO many (n) VALUES (?)", (n,)) for n in rows])
            await db.execute("UPDATE many SET n = -n WHERE id = ?", (start + 1,))


if __name__ == "__main__":
    sys.exit(main())
