"""A million rows into three replicas, from a Spark master with two workers; then a million more under faults; then a
million while the driver is killed as well, again and again, and whoever comes next names the same load.

BENCH_ROWS=50000 BENCH_KILLS=2 python -m benchmarks.pipeline.load

`disturbed` says what befalls the tasks, speculative twins among it. Each row must be there once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.node.databases import client

from benchmarks.audits import standalone
from benchmarks.database.cluster import cluster
from benchmarks.pipeline import disturbed
from greenline.cli.local import Local
from greenline.pipeline import session
from greenline.pipeline.sink_ledger import CREATE, LEDGER

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
LOADS = os.environ.get("BENCH_LOADS", "plain disturbed killed").split()
KILLS = int(os.environ.get("BENCH_KILLS", "3"))
PARTITIONS = 8
PATIENCE_S = 600.0
LOADED = f'SELECT coalesce(sum("rows"), 0) FROM {LEDGER} WHERE load = ? AND partition >= 0'


def main() -> int:
    if len(sys.argv) > 1:
        master, at, name, notes = sys.argv[1:]
        _load(master, Path(at), name, Path(notes))
        return 0
    with TemporaryDirectory() as made, standalone.cluster(disturbed.CORES) as master, cluster() as local:
        place = Path(made)

        def driver(name: str) -> subprocess.Popen[bytes]:
            (place / name).mkdir(exist_ok=True)
            words = [master, str(local.place), name, str(place / name)]
            return subprocess.Popen([sys.executable, "-m", "benchmarks.pipeline.load", *words], start_new_session=True)

        loads = {
            "plain": lambda: _ended(driver("plain")),
            "disturbed": lambda: _ended(driver("disturbed")),
            "killed": lambda: _killed(local, driver),
        }
        wrong = sum(not _timed(name, local, place, loads[name]) for name in LOADS)
    return 1 if wrong else 0


def _load(master: str, at: Path, name: str, notes: Path) -> None:
    settings = disturbed.SETTINGS if name != "plain" else None
    spark = session.spark("greenline load", master=master, memory="1g", settings=settings)
    rows = disturbed.frame(spark, ROWS, PARTITIONS, at=at, load=name, notes=notes, is_disturbed=name != "plain")
    told = {"at": str(at), "table": name, "load": name, "create": "true", "partitions": str(PARTITIONS)}
    begun = time.perf_counter()
    rows.write.format("greenline").options(**told).mode("append").save()
    print(f"  {name}: {time.perf_counter() - begun:.1f} s without the start of Spark", flush=True)
    session.stop()


def _ended(driver: subprocess.Popen[bytes]) -> None:
    assert driver.wait() == 0, "the load has failed"


def _killed(local: Local, driver: Callable[[str], subprocess.Popen[bytes]]) -> None:
    """Each time a little further; the last one is left alone."""
    asyncio.run(_make_ledger(local))
    for number in range(1, KILLS + 1):
        running = driver("killed")
        _until_loaded(local, running, ROWS * number // (KILLS + 1))
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        print(f"  the driver was killed at {asyncio.run(_loaded(local)):,} rows", flush=True)
    _ended(driver("killed"))


def _until_loaded(local: Local, running: subprocess.Popen[bytes], rows: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while asyncio.run(_loaded(local)) < rows:
        assert running.poll() is None, "the load has ended by itself"
        assert time.monotonic() < until, "nothing is loaded"
        time.sleep(0.1)


async def _make_ledger(local: Local) -> None:
    """So that it can be looked at before the load makes it."""
    async with client(local) as db:
        await db.execute(CREATE)


async def _loaded(local: Local) -> int:
    async with client(local) as db:
        ((rows,),) = await db.query(LOADED, ("killed",))
        return int(rows)


def _timed(name: str, local: Local, place: Path, load: Callable[[], None]) -> bool:
    begun = time.perf_counter()
    load()
    took = time.perf_counter() - begun
    count, distinct, total = asyncio.run(_counted(local, name))
    befell = disturbed.seen(place / name)
    is_right = (count, distinct, total) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2)
    what = "each once" if is_right else f"FAIL: {count:,} rows, {distinct:,} of them different"
    print(f"{name:<12}{ROWS:>12,} rows {took:>8.1f} s {ROWS / took:>10,.0f} rows/s   {what}", flush=True)
    print(f"  {', '.join(befell) or 'nothing befell it'}", flush=True)
    if len(befell) != (0 if name == "plain" else len(disturbed.WAYS)):
        print("FAIL: that is not what was to befall it", flush=True)
        return False
    return is_right


async def _counted(local: Local, table: str) -> tuple[int, int, int]:
    async with client(local) as db:
        ((count, distinct, total),) = await db.query(f"SELECT count(*), count(DISTINCT id), sum(id) FROM {table}")
        return count, distinct, total


if __name__ == "__main__":
    sys.exit(main())
