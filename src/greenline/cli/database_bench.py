"""What the replicated database does in a second, on this machine: three replicas, their clients, all that is between.

Every row is an action of its own, with an identity, an outcome, exactly-once on; packets and connections are encrypted.
In the end every replica must have every row that was answered, once.
"""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from greenline.cli.inserts import ROW_BYTES, Inserting
from greenline.cli.local import Local, make, waits_for
from greenline.cli.reach import Reach, reach
from greenline.cli.say import Misuse
from greenline.client import Client
from greenline.node.certificates import client_context
from greenline.node.config import Tracing, written
from greenline.node.status import Status
from greenline.replication.port import Level

NAMES = ("p", "q", "r")
SESSIONS = 6
"""At each replica, pipelined."""
GOAL = 100_000
PATIENCE_S = 60.0
_CREATE = "CREATE TABLE inserted (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"


@dataclass(frozen=True)
class Measured:
    what: str
    level: str
    rate: float
    """Rows a second, answered."""
    p50_ms: float
    p99_ms: float
    node_us: float
    """CPU of all replicas together, for each row."""
    load_us: float
    """CPU of the clients, for each row."""
    bundle: float
    """Rows in a bundle."""
    goal: float | None

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"   goal {self.goal:,.0f}: {'met' if self.rate >= self.goal else 'MISSED'}"
        cpu = f"{self.node_us:.1f} + {self.load_us:.1f} us of CPU each, {self.bundle:.0f} in a bundle"
        return (
            f"{self.what:<44}{self.rate:>10,.0f}/s   p50 {self.p50_ms:.1f} ms   p99 {self.p99_ms:.1f} ms   {cpu}{goal}"
        )

    @property
    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(seconds: float, warm: float) -> Iterator[Measured]:
    for level, goal in ((Level.LOCAL, GOAL), (Level.QUORUM, None)):
        with tempfile.TemporaryDirectory() as place:
            local = make(Path(place), NAMES, trace=Tracing.OFF)
            try:
                if failures := local.start_all():
                    raise failures[0]
                yield _inserts(local, level, goal, seconds, warm)
            finally:
                local.stop_all()


def _inserts(local: Local, level: Level, goal: float | None, seconds: float, warm: float) -> Measured:
    if not waits_for(lambda: all(_is_in_primary(local.status(name)) for name in NAMES), PATIENCE_S):
        raise Misuse("the three replicas have not come together; is this machine very busy?")
    reached = reach(local.place)
    asyncio.run(_with(reached, _create))
    context = None if reached.ca is None else client_context(reached.ca.read_bytes())
    load = Inserting(reached.user, reached.password, context)
    used, own = _cpu_of(local), _own_cpu()
    addresses = [local.configs[name].clients[name] for name in NAMES]
    rate = asyncio.run(load.run(addresses, SESSIONS, level, warm, seconds))
    used, own = _cpu_of(local) - used, _own_cpu() - own
    bundles = asyncio.run(_verify(local, reached, load.done))
    latencies = load.latencies
    return Measured(
        f"inserts of {ROW_BYTES} bytes, pipelined, at {level}",
        level.value,
        rate,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[len(latencies) * 99 // 100],
        1e6 * used / load.done,
        1e6 * own / load.done,
        load.done / bundles,
        goal,
    )


async def _create(db: Client) -> None:
    await db.execute(_CREATE)


async def _verify(local: Local, reached: Reach, done: int) -> int:
    """Every replica has what was answered, once, and all have the same; then, in how many bundles."""
    found = set()
    position = 0
    for name in NAMES:
        at = msgspec.structs.replace(reached, addresses=written(local.configs[name].clients[name]))
        async with at.connected(roams=False) as db:
            ((count,),) = (await db.query("SELECT count(*) FROM inserted")).rows
            if count != done:
                raise Misuse(f"{name} has {count:,} rows, and {done:,} were answered: this must not be")
            digests = await db.digests()
            found.add(digests.state)
            position = digests.position
    if len(found) != 1:
        raise Misuse("the replicas have different contents: this must not be")
    return position


async def _with(reached: Reach, use: Any) -> None:
    async with reached.connected() as db:
        await use(db)


def _is_in_primary(status: object) -> bool:
    stands = status.standing if isinstance(status, Status) else None
    return stands is not None and stands.is_primary and len(stands.here) == len(NAMES)


def _cpu_of(local: Local) -> float:
    """Of all nodes, in seconds."""
    ticks = 0
    for name in NAMES:
        fields = Path(f"/proc/{local.pid(name)}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
