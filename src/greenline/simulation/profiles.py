"""Profiles: which faults come together, and how often.

| profile  | what it draws for one run of T virtual seconds |
|----------|------------------------------------------------|
| calm     | no faults; latencies of 0.5 ms and an exponential tail of mean 0.5 ms |
| lossy    | loss of 1 to 10 %, duplication up to 5 %, reordering up to 20 %, up to 3 delay spikes of 20 to 200 ms |
| flapping | 2 to 4 partitions (some overlapping), 1 or 2 one-way cuts, 1 link that flaps every 100 to 400 ms |
| storm    | its own mixture in each run: loss, duplication and reordering up to 30 % each, each in 3 of 4 runs; |
|          | 1 or 2 one-way cuts; 2 or 3 ambushes (a crash or a partition while membership changes); |
|          | 1 to 3 crashes at any order, with a restart; 1 or 2 pauses; 1 or 2 disk faults (slow, full, failed); |
|          | and, each in half of the runs: partitions, a flapping link, delay spikes, a slow receiver, skewed clocks; |
|          | for a subject that has to survive it, in 1 of 5 runs: a blackout (everybody crashes within 50 ms); |
|          | where processes come and go: newcomers arrive (6 of 10 runs), what they are given is intercepted (half of |
|          | those); a departure (1 of 3), a removal (1 of 4), a change of weight (1 of 4); two stay in any case |

A fault lasts between T/40 and T/5. `only` keeps the named kinds; each of those is then drawn in every run, also
where its profile would not have it, so that every kind can be switched on alone.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from greenline.kernel.identities import ProcId
from greenline.simulation.comings import Arrival, Departure, Interception, Removal, Weighing
from greenline.simulation.faults import (
    Ambush,
    Blackout,
    Crash,
    FailingDisk,
    FullDisk,
    OneWay,
    Partition,
    Pause,
    Sides,
    Skew,
    SlowDisk,
    SlowReceiver,
    Spike,
    Weather,
    flapping,
)
from greenline.simulation.schedule import COMINGS, KINDS, Schedule

MOST_LEAVERS = 2
LEAST_LEFT = 2
"""So many stay whatever happens."""
LATE = 0.1
"""How many newcomers come only when the network has healed."""

Drawing = Callable[["Draw"], Schedule]


class Draw:
    """Draws single faults for a run of so many seconds among these processes."""

    def __init__(
        self, chance: Random, names: tuple[ProcId, ...], seconds: float, newcomers: tuple[ProcId, ...] = ()
    ) -> None:
        self.chance = chance
        self.names = names + newcomers
        self.newcomers = newcomers
        self.seconds = seconds
        self.stayers = list(self.names)
        """Of whom nobody has asked yet that they leave."""

    def span(self) -> tuple[float, float]:
        at = self.chance.uniform(0.02, 0.85) * self.seconds
        return at, at + self.lasting()

    def lasting(self) -> float:
        return self.chance.uniform(1 / 40, 1 / 5) * self.seconds

    def one(self) -> ProcId:
        return self.chance.choice(self.names)

    def two_sides(self) -> Sides:
        shuffled = self.chance.sample(self.names, len(self.names))
        cut = self.chance.randrange(1, len(shuffled))
        return tuple(sorted(shuffled[:cut])), tuple(sorted(shuffled[cut:]))

    def weather(self, what: str, low: float, high: float) -> Schedule:
        rate = self.chance.uniform(low, high)
        return (Weather(at=0.0, until=self.seconds, what=what, rate=rate),)  # type: ignore[arg-type]

    def partition(self) -> Schedule:
        at, until = self.span()
        return (Partition(at=at, until=until, sides=self.two_sides()),)

    def overlap(self) -> Schedule:
        """Two sides with somebody in both, who hears everybody."""
        at, until = self.span()
        left, right = self.two_sides()
        both = self.chance.choice(right)
        return (Partition(at=at, until=until, sides=(tuple(sorted({*left, both})), right)),)

    def one_way(self) -> Schedule:
        at, until = self.span()
        senders, receivers = self.two_sides()
        return (OneWay(at=at, until=until, senders=senders, receivers=receivers),)

    def flapping(self) -> Schedule:
        at, _ = self.span()
        period, times = self.chance.uniform(0.1, 0.4), self.chance.randint(3, 6)
        return flapping(self.two_sides(), at, at + period * times, period)

    def spike(self) -> Schedule:
        at, until = self.span()
        some = self.chance.sample(self.names, self.chance.randrange(2, len(self.names) + 1))
        return (Spike(at=at, until=until, between=tuple(sorted(some)), delay=self.chance.uniform(0.02, 0.2)),)

    def crash(self) -> Schedule:
        at, until = self.span()
        return (self._crash(at, until),)

    def _crash(self, at: float, until: float) -> Crash:
        chance = self.chance
        keep = chance.choice((0.0, 0.0, chance.random(), 1.0))
        orders = chance.choice((0, chance.randrange(1, 12)))
        return Crash(at=at, until=until, process=self.one(), orders=orders, keep=keep, tear=chance.random() < 0.5)

    def blackout(self) -> Schedule:
        """Some die a few orders later than the others; all are down for a while, then they return one by one."""
        at = self.chance.uniform(0.1, 0.85) * self.seconds
        last = 0.05
        crashes = []
        for name in self.names:
            begins, lasts = self.chance.uniform(0.0, last), self.lasting()
            crash = self._crash(begins, last + lasts)
            crashes.append(msgspec.structs.replace(crash, process=name))
        return (Blackout(at=at, until=at + max(crash.until for crash in crashes), crashes=tuple(crashes)),)

    def ambush(self) -> Schedule:
        at = self.chance.uniform(0.02, 0.4) * self.seconds
        if self.chance.random() < 0.5:
            fault: Crash | Partition = self._crash(0.0, self.lasting())
        else:
            fault = Partition(at=0.0, until=self.lasting(), sides=self.two_sides())
        return (
            Ambush(
                at=at,
                until=at,
                delay=self.chance.choice((0.0, self.chance.uniform(0.0, 0.01))),
                patience=0.05 * self.seconds,
                bait=Partition(at=0.0, until=self.seconds / 10, sides=self.two_sides()),
                fault=fault,
            ),
        )

    def pause(self) -> Schedule:
        at, until = self.span()
        return (Pause(at=at, until=until, process=self.one()),)

    def slow_receiver(self) -> Schedule:
        at, until = self.span()
        service, buffer = self.chance.uniform(0.002, 0.02), self.chance.randrange(4, 32)
        return (SlowReceiver(at=at, until=until, process=self.one(), service=service, buffer=buffer),)

    def slow_disk(self) -> Schedule:
        at, until = self.span()
        return (SlowDisk(at=at, until=until, process=self.one(), factor=self.chance.uniform(5, 50)),)

    def full_disk(self) -> Schedule:
        at, until = self.span()
        return (FullDisk(at=at, until=until, process=self.one()),)

    def failing_disk(self) -> Schedule:
        at, until = self.span()
        return (FailingDisk(at=at, until=until, process=self.one()),)

    def skew(self) -> Schedule:
        chance = self.chance
        return tuple(
            Skew(at=0.0, until=self.seconds, process=name, offset=chance.uniform(-5, 5), rate=chance.uniform(0.8, 1.25))
            for name in self.names
        )

    # Replicas that come and go.

    def arrivals(self) -> Schedule:
        drawn: Schedule = ()
        for name in self.newcomers:
            at = self.chance.uniform(0.02, self.chance.choice((0.4, 0.9))) * self.seconds
            drawn += () if self.chance.random() < LATE else (Arrival(at=at, until=at, process=name),)
        return drawn

    def departure(self) -> Schedule:
        at, _ = self.span()
        return tuple(Departure(at=at, until=at, process=name, asked=self.one()) for name in self._leaver())

    def removal(self) -> Schedule:
        at = self.chance.uniform(0.1, 0.7) * self.seconds
        until = at + self.chance.uniform(0.2, 0.6) * self.seconds
        keep, is_void = self.chance.choice((0.0, 1.0)), self.chance.random() < 0.5
        return tuple(
            Removal(at=at, until=until, process=name, is_void=is_void, keep=keep, tear=self.chance.random() < 0.5)
            for name in self._leaver()
        )

    def _leaver(self) -> list[ProcId]:
        """Somebody who may go, if anybody may."""
        if len(self.stayers) <= max(LEAST_LEFT, len(self.names) - MOST_LEAVERS):
            return []
        leaver = self.chance.choice(self.stayers)
        self.stayers.remove(leaver)
        return [leaver]

    def weighing(self) -> Schedule:
        at, _ = self.span()
        return (Weighing(at=at, until=at, process=self.one(), weight=self.chance.choice((0, 1, 2, 3))),)

    def interception(self) -> Schedule:
        chance = self.chance
        at = chance.uniform(0.0, 0.2) * self.seconds
        strikes = chance.choice(("source", "source", "newcomer", "both"))
        delay, keep = chance.choice((0.0, chance.uniform(0.0, 0.02))), chance.choice((0.0, 1.0))
        return (Interception(at=at, until=at, delay=delay, strikes=strikes, lasts=self.lasting(), keep=keep),)  # type: ignore[arg-type]

    def comings_and_goings(self) -> Schedule:
        drawn = self.arrivals()
        if self.newcomers:
            drawn += self.perhaps(0.5, lambda: self.several(1, 2, self.interception))
        for probability, drawing in ((0.35, self.departure), (0.25, self.removal), (0.25, self.weighing)):
            drawn += self.perhaps(probability, drawing)
        return drawn

    def several(self, low: int, high: int, *drawings: Callable[[], Schedule]) -> Schedule:
        """Between so many and so many, each one of these."""
        drawn: Schedule = ()
        for _ in range(self.chance.randint(low, high)):
            drawn += self.chance.choice(drawings)()
        return drawn

    def perhaps(self, probability: float, drawing: Callable[[], Schedule]) -> Schedule:
        return drawing() if self.chance.random() < probability else ()


def _calm(_: Draw) -> Schedule:
    return ()


def _lossy(draw: Draw) -> Schedule:
    return (
        draw.weather("loss", 0.01, 0.10)
        + draw.weather("duplication", 0.0, 0.05)
        + draw.weather("reordering", 0.0, 0.20)
        + draw.several(0, 3, draw.spike)
    )


def _flapping(draw: Draw) -> Schedule:
    return draw.several(2, 4, draw.partition, draw.overlap) + draw.several(1, 2, draw.one_way) + draw.flapping()


def _storm(draw: Draw) -> Schedule:
    drawn: Schedule = ()
    for what in ("loss", "duplication", "reordering"):
        drawn += draw.perhaps(0.75, lambda what=what: draw.weather(what, 0.0, 0.30))  # type: ignore[misc]
    drawn += draw.several(1, 2, draw.one_way)
    drawn += draw.several(2, 3, draw.ambush)
    drawn += draw.several(1, 3, draw.crash)
    drawn += draw.several(1, 2, draw.pause)
    drawn += draw.several(1, 2, draw.slow_disk, draw.full_disk, draw.failing_disk)
    drawn += draw.perhaps(0.5, lambda: draw.several(1, 3, draw.partition, draw.overlap))
    for drawing in (draw.flapping, draw.spike, draw.slow_receiver, draw.skew):
        drawn += draw.perhaps(0.5, drawing)
    return drawn


PROFILES: dict[str, Drawing] = {"calm": _calm, "lossy": _lossy, "flapping": _flapping, "storm": _storm}

ALONE: dict[str, Drawing] = {
    "loss": lambda draw: draw.weather("loss", 0.01, 0.30),
    "duplication": lambda draw: draw.weather("duplication", 0.01, 0.30),
    "reordering": lambda draw: draw.weather("reordering", 0.01, 0.30),
    "spike": lambda draw: draw.several(1, 3, draw.spike),
    "partition": lambda draw: draw.several(1, 3, draw.partition),
    "overlap": lambda draw: draw.several(1, 3, draw.overlap),
    "one-way": lambda draw: draw.several(1, 3, draw.one_way),
    "flapping": lambda draw: draw.flapping(),
    "crash": lambda draw: draw.several(1, 4, draw.crash),
    "ambush": lambda draw: draw.several(2, 4, draw.ambush),
    "blackout": lambda draw: draw.several(1, 2, draw.blackout),
    "pause": lambda draw: draw.several(1, 3, draw.pause),
    "slow-receiver": lambda draw: draw.several(1, 2, draw.slow_receiver),
    "disk-slow": lambda draw: draw.several(1, 2, draw.slow_disk),
    "disk-full": lambda draw: draw.several(1, 2, draw.full_disk),
    "disk-fail": lambda draw: draw.several(1, 2, draw.failing_disk),
    "skew": lambda draw: draw.skew(),
    "arrival": lambda draw: draw.arrivals(),
    "departure": lambda draw: draw.departure(),
    "removal": lambda draw: draw.removal(),
    "weighing": lambda draw: draw.several(1, 3, draw.weighing),
    "interception": lambda draw: draw.arrivals() + draw.several(1, 2, draw.interception),
}

assert set(ALONE) == set(KINDS), "every kind of fault can be switched on alone"


def draw_schedule(
    profile: str,
    chance: Random,
    names: tuple[ProcId, ...],
    seconds: float,
    only: tuple[str, ...] = (),
    blackouts: float = 0.0,
    newcomers: tuple[ProcId, ...] | None = None,
) -> Schedule:
    """The faults of one run; `blackouts`: in how many storms everything goes dark; `newcomers`: who comes, where
    processes come and go."""
    draw = Draw(chance, names, seconds, newcomers or ())
    if len(names) < 2:
        raise ValueError("one process alone has no network to fail; simulate at least two")
    if only:
        if newcomers is None and any(kind in COMINGS for kind in only):
            raise ValueError("here nobody comes and goes")
        return tuple(fault for kind in only for fault in ALONE[kind](draw))
    drawn = PROFILES[profile](draw)
    if blackouts and profile == "storm":
        drawn += draw.perhaps(blackouts, draw.blackout)
    if newcomers is not None and profile == "storm":
        drawn += draw.comings_and_goings()
    return drawn
