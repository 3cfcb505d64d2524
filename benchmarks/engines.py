"""Three engines over three Rings in one process, without sockets, on disks in memory: what ordering itself costs.

Real routers, real frames: every bundle is encoded, logged, forced, multicast, decoded, marked green and answered at
all three. The database answers at once. And what a merge costs, by what is behind and by what is missing.
"""

from __future__ import annotations

import cProfile
import gc
import heapq
import pstats
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.figures import Figure
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.codec import Codec
from greenline.kernel.database import Applied, Apply, Commit, Committed, Open, Opened
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Arm, Ask, Disarm, Discard, Force, Order, Record, Stop, Tell, Transmit, Write
from greenline.kernel.recovery import Life
from greenline.kernel.router import Layer, Router
from greenline.kernel.scribe import Depth
from greenline.replication.core import Engine
from greenline.replication.messages import Base, Bundle, Ordered
from greenline.replication.messages import Record as EngineRecord
from greenline.replication.port import BundleId, Level, Replied, Submit
from greenline.replication.regprim import RegPrim
from greenline.replication.replica import NO_ORDER, Replica
from greenline.replication.roster import founders
from greenline.replication.settings import Settings
from greenline.ring.core import RingCore, Unborn
from greenline.ring.messages import AnyMessage, Ceiling
from greenline.ring.settings import Settings as RingSettings

NAMES = ("p", "q", "r")
RING = RingSettings(packet_bytes=60_000, window_bytes=8 << 20, most_queued=20_000, most_queued_bytes=64 << 20)
ACTION_BYTES = 200
TOGETHER = 100
"""Actions that a busy client submits at once."""
LONGEST_STALL_S = 0.2
"""What a merge may cost the others, however much somebody lacks: an exchange of at most `far` bundles."""
GROWS_BY = 4
"""What a merge may cost more when a thousand times as much is behind: colder memory, but nothing that is walked."""
OUTSTANDING = 20
"""Submissions of each server that are unanswered."""

HOP_S = 0.00001
FORCE_S = 0.0001
"""Virtual time that a datagram and a forced write take: what comes meanwhile shares the next one."""
OUTCOMES = (Outcome(Verdict.DONE, b"ok"),) * 1000
"""At least as many as a bundle has actions."""


class Joined:
    """The smallest driver of whole nodes: what one sends, the next gets; timers fire when nothing else is to do."""

    def __init__(self, settings: Settings, logs: dict[ProcId, bytes] | None = None) -> None:
        self.engines = {name: Engine(settings) for name in NAMES}
        self.routers: dict[ProcId, Router] = {}
        self.rings = {name: RingCore(RING) for name in NAMES}
        self.answered = dict.fromkeys(NAMES, 0)
        self.wire: deque[tuple[ProcId, ProcId, bytes]] = deque()
        self.timers: list[tuple[float, int, ProcId, Arm]] = []
        self.forces: deque[tuple[float, ProcId, int]] = deque()
        self.tick = count()
        self.now = 0.0
        self.written = 0
        self.sent_bytes = 0
        for name in NAMES:
            ring = Layer("ring", 1, self.rings[name], AnyMessage, Ceiling, only_last_record=True)
            engine = Layer("engine", 2, self.engines[name], None, EngineRecord)
            self.routers[name] = Router(name, NAMES, [engine, ring], Depth.CONFIGURATIONS)
            self.perform(name, self.routers[name].boot(0.0, (logs or {}).get(name, b"")))

    def perform(self, name: ProcId, orders: list[Order]) -> None:
        router = self.routers[name]
        todo = deque(orders)
        while todo:
            order = todo.popleft()
            match order:
                case Transmit(to, frame):
                    self.sent_bytes += len(frame) * len(to)
                    self.wire.extend((receiver, name, frame) for receiver in to)
                case Write(frame):
                    self.written += len(frame)
                case Force(number):
                    self.forces.append((self.now + FORCE_S, name, number))
                case Ask(layer, call, _, request):
                    todo.extend(router.answered(self.now, layer, call, self.database(name, request)))
                case Tell(Replied(_, _, _, outcomes)):
                    self.answered[name] += len(outcomes)
                case Arm():
                    heapq.heappush(self.timers, (self.now + order.after, next(self.tick), name, order))
                case Stop(reason):
                    raise RuntimeError(f"{name} stopped: {reason}")
                case Record() | Tell() | Disarm() | Discard():
                    pass
                case _:
                    raise AssertionError(f"nobody carries out {order!r} here")

    def database(self, name: ProcId, request: Any) -> Any:
        match request:
            case Open():  # it has all that the log had, as after any good stop
                green = self.replica(name).green
                return Opened(green, b"", green)
            case Apply(position):
                return Applied(position, b"", OUTCOMES)
            case Commit(position):
                return Committed(position, position)

    def run_once(self) -> None:
        if self.forces and (self.forces[0][0] <= self.now or not self.wire):
            at, name, number = self.forces.popleft()
            self.now = max(self.now, at)
            self.perform(name, self.routers[name].forced(self.now, number))
        elif self.wire:
            to, sender, frame = self.wire.popleft()
            self.now += HOP_S
            self.perform(to, self.routers[to].received(self.now, sender, frame))
        else:
            at, _, name, arm = heapq.heappop(self.timers)
            self.now = max(self.now, at)
            self.perform(name, self.routers[name].fire(self.now, arm.layer, arm.timer, arm.generation))

    def replica(self, name: ProcId) -> Replica:
        return self.engines[name].phase.server.replica  # type: ignore[union-attr]

    def is_one_configuration(self) -> bool:
        phases = [ring.phase for ring in self.rings.values()]
        return all(not isinstance(phase, Unborn) and phase.processor.ring.order == NAMES for phase in phases)

    def is_formed(self) -> bool:
        """Are all in one primary component?"""
        phases = [engine.phase for engine in self.engines.values()]
        return all(isinstance(phase, RegPrim) and phase.component.members == NAMES for phase in phases)


def _chunk(number: int) -> tuple[bytes, int]:
    """What a busy client submits, packed as it would; every action is of 200 bytes in all."""
    actions = tuple(Action("s1", number + each, b"x" * (ACTION_BYTES - 15)) for each in range(TOGETHER))
    return pack(actions), TOGETHER


def order(joined: Joined, actions: int) -> None:
    """So many actions at each server, with enough of them always under way."""
    target = {name: joined.answered[name] + actions for name in NAMES}
    asked = dict(joined.answered)
    while any(joined.answered[name] < target[name] for name in NAMES):
        for name in NAMES:
            while asked[name] < target[name] and asked[name] - joined.answered[name] < OUTSTANDING * TOGETHER:
                packed, together = _chunk(asked[name])
                asked[name] += together
                submit = Submit(asked[name], packed, together, Level.LOCAL)
                joined.perform(name, joined.routers[name].ask(joined.now, submit))
        for _ in range(20):
            joined.run_once()


def rate(actions: int = 100_000) -> float:
    joined = Joined(Settings(servers=NAMES))
    while not joined.is_formed():
        joined.run_once()
    order(joined, actions // 10)
    begun = time.perf_counter()
    order(joined, actions)
    return 3 * actions / (time.perf_counter() - begun)


# Merges.


def _log(server: ProcId, index: int) -> bytes:
    """The log of a server that has ordered so many small bundles, made by p."""
    codec: Codec[Any] = Codec(2, EngineRecord)
    base = Base(_SETTINGS.cluster, server, 0, NO_ORDER, (), (), 0, founders(_SETTINGS), b"", is_new=False)
    lives: Codec[Any] = Codec(0, Life)
    frames = [lives.encode(Life(1)), codec.encode(base)]
    chunk = pack((Action("s1", 1, b"x" * (ACTION_BYTES - 15)),))
    ids = tuple(BundleId("p", at) for at in range(1, index + 1))
    frames += [codec.encode(Bundle("p", each.index, each.index, 0, (chunk,))) for each in ids]
    frames.append(codec.encode(Ordered(1, ids)))
    return b"".join(frames)


_SETTINGS = Settings(servers=NAMES, retain_after_white=10**9, checkpoint_bytes=1 << 40)


@dataclass(frozen=True)
class Merge:
    seconds: float
    """From the configuration of all three until all are one primary component."""
    stall: float
    """The longest time in it that p ordered nothing, though it was asked to."""


def merge(behind: int, missing: int) -> Merge:
    """r has ordered so many bundles, and lacks so many more, when it meets p and q, who are asked for more."""
    ahead = {name: _log(name, behind + missing) for name in ("p", "q")}
    joined = Joined(_SETTINGS, {**ahead, "r": _log("r", behind)})
    chunk = pack((Action("s2", 1, b"x" * (ACTION_BYTES - 15)),))
    gc.collect()
    gc.freeze()
    while not joined.is_one_configuration():
        joined.run_once()
    begun = last = time.perf_counter()
    stall, ticket = 0.0, 0
    green = joined.replica("p").green
    while not joined.is_formed():
        ticket += 1
        joined.perform("p", joined.routers["p"].ask(joined.now, Submit(ticket, chunk, 1)))
        for _ in range(30):
            joined.run_once()
        if joined.replica("p").green > green:
            now, green = time.perf_counter(), joined.replica("p").green
            stall, last = max(stall, now - last), now
    gc.unfreeze()
    seconds = time.perf_counter() - begun
    return Merge(seconds, max(stall, begun + seconds - last))


def measure() -> Iterator[Figure]:
    best = max(rate() for _ in range(3))
    yield Figure("engine, three over three Rings, 200-byte actions/s", best, "1/s", 200_000)
    short = min((merge(1_000, 1_000) for _ in range(3)), key=lambda each: each.seconds)
    for behind in (1_000, 10_000, 100_000, 1_000_000):
        for missing in (0, 1_000):
            found = min((merge(behind, missing) for _ in range(2)), key=lambda each: each.seconds)
            name = f"merge, {behind:,} bundles behind, {missing:,} missing"
            yield Figure(name, found.seconds * 1000, "ms", GROWS_BY * short.seconds * 1000, at_least=False)
    for missing in (10_000, 100_000):
        found = merge(1_000, missing)
        yield Figure(f"merge, 1,000 behind, {missing:,} missing", found.seconds * 1000, "ms")
        name = f"longest stall of the primary component, {missing:,} missing"
        yield Figure(name, found.stall * 1000, "ms", LONGEST_STALL_S * 1000, at_least=False)


if __name__ == "__main__":
    if sys.argv[1:] == ["--profile"]:
        with cProfile.Profile() as profile:
            rate()
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    for figure in measure():
        print(figure)
