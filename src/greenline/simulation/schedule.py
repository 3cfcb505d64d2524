"""A schedule: all that befalls a run, in one tuple. Schedules compose by `+`."""

from __future__ import annotations

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
    Skew,
    SlowDisk,
    SlowReceiver,
    Spike,
    Weather,
)

AnyFault = (
    Weather
    | Partition
    | OneWay
    | Spike
    | Crash
    | Pause
    | SlowReceiver
    | SlowDisk
    | FullDisk
    | FailingDisk
    | Skew
    | Ambush
    | Blackout
    | Arrival
    | Departure
    | Removal
    | Weighing
    | Interception
)
Schedule = tuple[AnyFault, ...]

COMINGS = tuple(kind.kind for kind in (Arrival, Departure, Removal, Weighing, Interception))
"""Kinds that only a protocol knows whose processes come and go."""
KINDS = (
    *("loss", "duplication", "reordering"),
    *(kind.kind for kind in (Spike, Partition, OneWay, Crash, Pause, SlowReceiver, SlowDisk, FullDisk, FailingDisk)),
    *(Skew.kind, Ambush.kind, Blackout.kind, "flapping", "overlap"),
    *COMINGS,
)
"""Every kind that can be switched on alone. Flapping and overlapping partitions are schedules of plain ones."""
