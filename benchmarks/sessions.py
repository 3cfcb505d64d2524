"""What is known of sessions stays small: a million requests by ten thousand clients, through one database.

python -m benchmarks.sessions

Clients come and go: each names a session, asks some twenty things in it, says what it has received as it goes, and
begins another. One request in a hundred is asked again, at once or much later. One in ten is relaxed, and arrives out
of order. What has not been used for a while is expired. Then as much should be kept as clients need who are there.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from benchmarks.figures import Figure
from benchmarks.samples import Samples
from greenline.database.memory import MemorySqlite
from greenline.database.snapshots import Part, opened
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.database import (
    Applied,
    Apply,
    Chunk,
    Commit,
    Expire,
    Query,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotEnd,
    SnapshotHeld,
)

REQUESTS = 1_000_000
CLIENTS = 10_000
BUNDLE = 100
A_SESSION = 20
"""Requests in it."""
AGAIN_ONE_IN = 100
RELAXED_ONE_IN = 10
LATE = 2000
"""Bundles: as late may a repetition be."""
SCATTERED = 5
"""Bundles: among so many does a relaxed request arrive somewhere."""
EXPIRE_EVERY = 250
UNUSED_FOR = 1000
"""Bundles: a client asks for something every hundred or so."""
COUNTERS = 100
LOOK_EVERY = 500

SESSIONS = 1.1 * (CLIENTS + (UNUSED_FOR + EXPIRE_EVERY) * BUNDLE / A_SESSION)
"""The bound: one of each client, and what has ended since the horizon; a tenth more, as chance has it."""
EACH = 2
"""Outcomes of a session, and intervals: its client has received all but what is under way."""
GROWTH = 1.05
"""Pages of the second half of the run beside those of the first."""
APPLIED = 10_000
PAGE = 4096


@dataclass
class Client:
    name: str
    session: str = ""
    strict: int = 0
    relaxed: int = 0
    received: int = 0
    sessions: int = 0
    """That it has named so far."""

    def ask(self, chance: Random, position: int) -> Action:
        if not self.session or self.strict + self.relaxed == A_SESSION:
            self.begin(position)
        body = b"add c%d 1" % chance.randrange(COUNTERS)
        if not chance.randrange(RELAXED_ONE_IN):
            self.relaxed += 1
            return Action(self.session, self.relaxed, body, is_relaxed=True)
        self.strict += 1
        return Action(self.session, self.strict, body, self.received)

    def begin(self, position: int) -> None:
        """Where its server stands is part of the name."""
        self.session, self.strict, self.relaxed, self.received = f"{self.name}@{position}", 0, 0, 0
        self.sessions += 1

    def told(self, action: Action, outcome: Outcome, position: int) -> None:
        if action.session != self.session:
            return
        if outcome.verdict is Verdict.EXPIRED:
            self.begin(position)
        elif not action.is_relaxed:
            self.received = max(self.received, action.number)


class Arrival(NamedTuple):
    client: Client
    action: Action
    is_first: bool = True


class Run:
    def __init__(self) -> None:
        self.database = MemorySqlite(image_every=REQUESTS, chunk_rows=1000)
        self.clients = [Client(f"c{number}") for number in range(CLIENTS)]
        self.chance = Random("sessions")
        self.due: defaultdict[int, list[Arrival]] = defaultdict(list)
        """What arrives at a position: repetitions, and relaxed requests."""
        self.said: Counter[str] = Counter()
        """To those who asked for the first time."""
        self.said_again: Counter[str] = Counter()
        self.looks: list[Counter[str]] = []
        self.spent = 0.0
        """Seconds in the database."""

    def play(self) -> None:
        asked, position = 0, 0
        while asked < REQUESTS or self.due:
            bundle = self.due.pop(position + 1, [])
            while len(bundle) < BUNDLE and asked < REQUESTS:
                asked += 1
                self._ask(position, bundle)
            position += 1
            self._apply(position, bundle)
            if position % LOOK_EVERY == 0:
                self.looks.append(self._look())
        in_counters = sum(self._counted(number) for number in range(COUNTERS))
        assert in_counters == self.said["done"], f"{in_counters:,} in the counters, {self.said}"
        assert self.said["done"] + self.said["expired"] == REQUESTS, f"{REQUESTS:,} requests came to {self.said}"
        assert not self.said_again["done"], f"decided at the second time: {self.said_again}"

    def _ask(self, position: int, bundle: list[Arrival]) -> None:
        client = self.chance.choice(self.clients)
        action = client.ask(self.chance, position)
        arrives = position + 1
        if action.is_relaxed:
            arrives += self.chance.randrange(SCATTERED)
        (bundle if arrives == position + 1 else self.due[arrives]).append(Arrival(client, action))
        if not self.chance.randrange(AGAIN_ONE_IN):
            later = arrives + self.chance.choice((1, 1 + self.chance.randrange(LATE)))
            self.due[later].append(Arrival(client, action, is_first=False))

    def _apply(self, position: int, bundle: list[Arrival]) -> None:
        actions = pack(tuple(each.action for each in bundle))
        system = (Expire(position - UNUSED_FOR),) if position % EXPIRE_EVERY == 0 else ()
        begun = time.perf_counter()
        applied = self.database.answer(Apply(position, (actions,), system))
        self.database.answer(Commit(position))
        self.spent += time.perf_counter() - begun
        assert isinstance(applied, Applied), applied
        for each, outcome in zip(bundle, applied.replies, strict=True):
            said = self.said if each.is_first else self.said_again
            said["again" if outcome.is_again else outcome.verdict.value] += 1
            each.client.told(each.action, outcome, position)

    def _counted(self, number: int) -> int:
        answer = self.database.answer(Query(b"count c%d" % number))
        assert isinstance(answer, Rows)
        return int(answer.rows.split()[1])

    def _look(self) -> Counter[str]:
        """How many rows a snapshot of each table has, and how large it is."""
        held = self.database.answer(SnapshotBegin())
        assert isinstance(held, SnapshotHeld)
        chunks = {}
        for number, digest in enumerate(held.digests):
            chunk = self.database.answer(SnapshotChunk(held.position, number))
            assert isinstance(chunk, Chunk)
            chunks[digest] = chunk.data
        self.database.answer(SnapshotEnd())
        parts: list[Part] = opened(chunks)[1]
        seen = Counter(pages=self.database.pages)
        for part in parts:
            seen[part.table] += len(part.rows)
        return seen


def measure() -> Iterator[Figure]:
    run = Run()
    run.play()
    rate = (REQUESTS + run.said_again.total()) / run.spent
    _keep(run, rate)
    yield Figure("requests of sessions, applied", rate, "a second", APPLIED, True, _told(run))
    most = {table: max(look[table] for look in run.looks) for table in ("sessions", "outcomes", "intervals")}
    named = f"of {sum(client.sessions for client in run.clients):,} that were named by {CLIENTS:,} clients"
    yield Figure("sessions kept, at most", most["sessions"], "rows", SESSIONS, False, named)
    for table in ("outcomes", "intervals"):
        yield Figure(f"{table} kept, at most", most[table], "rows", EACH * SESSIONS, False)
    half = len(run.looks) // 2
    first, second = (max(look["pages"] for look in looks) for looks in (run.looks[:half], run.looks[half:]))
    told = f"{second:,} pages, {second * PAGE / 2**20:.1f} MiB"
    yield Figure("size in the second half, of that in the first", second / first, "times", GROWTH, False, told)


def _keep(run: Run, rate: float) -> None:
    samples = Samples("sessions")
    samples.add("applied", "throughput", rate, "1/s", clients=CLIENTS)
    for number, look in enumerate(run.looks, 1):
        for table in ("sessions", "outcomes", "intervals"):
            samples.add(table, "rows kept", look[table], "rows", bundles=number * LOOK_EVERY)
    samples.keep()


def _told(run: Run) -> str:
    counts = ((f"{count:,} {what}" for what, count in sorted(each.items())) for each in (run.said, run.said_again))
    return "; asked again: ".join(map(", ".join, counts))


if __name__ == "__main__":
    missed = 0
    for figure in measure():
        print(figure, flush=True)
        missed += not figure.is_met
    sys.exit(1 if missed else 0)
