"""Cores that live by their disk: one that makes checkpoints, one of which only the last record counts."""

from __future__ import annotations

import msgspec

from greenline.kernel.effects import Append, Barrier, Checkpoint, Effect, SetTimer, Upcall
from greenline.kernel.events import Downcall, Event, Start, TimerFired
from greenline.kernel.router import Layer

TICK_S = 0.001


class Added(msgspec.Struct, frozen=True, tag=True):
    """The tally has come to this."""

    number: int
    ballast: bytes = b""


class Share(msgspec.Struct, frozen=True, tag=True):
    """One of several records that only together say what the tally was at a checkpoint."""

    index: int
    of: int
    number: int
    ballast: bytes = b""


def reading(records: tuple[Added | Share, ...]) -> int:
    """The tally that these records say; a mixture says none, and is found here."""
    shares = [record for record in records if isinstance(record, Share)]
    number = shares[0].number if shares else 0
    assert records[: len(shares)] == tuple(shares), "a checkpoint comes first"
    assert [(each.index, each.of, each.number) for each in shares] == [
        (index, len(shares), number) for index in range(len(shares))
    ], f"a mixture: {shares}"
    for record in records[len(shares) :]:
        number += 1
        assert isinstance(record, Added)
        assert record.number == number, f"{record.number} where {number} comes next"
    return number


class Tally:
    """Counts what it is asked for, on disk before it says so; every so often it makes a checkpoint of its count."""

    phase = None

    def __init__(self, every: int = 5, shares: int = 3, ballast: bytes = b"", ticks: bool = False) -> None:
        self.number = 0
        self._every = every
        self._shares = shares
        self._ballast = ballast
        self._ticks = ticks
        self._tickets = 0

    def handle(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Start(records=records):
                self.number = reading(records)
                return [Upcall(("began", self.number)), *self._tick()]
            case TimerFired():
                return [*self._count(), *self._tick()]
            case Downcall():
                return self._count()
            case Upcall(payload):
                return [Upcall(payload)]
        return []

    def _tick(self) -> list[Effect]:
        return [SetTimer("tick", TICK_S)] if self._ticks else []

    def _count(self) -> list[Effect]:
        self.number += 1
        self._tickets += 1
        written: Effect = Append(Added(self.number, self._ballast))
        if self.number % self._every == 0:
            shares = (Share(index, self._shares, self.number, self._ballast) for index in range(self._shares))
            written = Checkpoint(tuple(shares))
        ticket = self._tickets
        return [written, Barrier(ticket), Upcall(("counted", self.number), gate=ticket)]


class Latest:
    """Appends a higher number now and then: what the ring does with its ceiling."""

    phase = None

    def __init__(self, ticks: float = 0.0) -> None:
        self.number = 0
        self._ticks = ticks

    def handle(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Start(records=records):
                assert len(records) <= 1, "only the last one is handed over"
                self.number = max((record.number for record in records), default=0)
                return [*self._next(), *self._tick()]
            case TimerFired():
                return [*self._next(), *self._tick()]
        return []

    def _tick(self) -> list[Effect]:
        return [SetTimer("tick", self._ticks)] if self._ticks else []

    def _next(self) -> list[Effect]:
        self.number += 1
        return [Append(Added(self.number)), Barrier(self.number), Upcall(("latest", self.number), gate=self.number)]


def tally_layer(tally: Tally) -> Layer:
    return Layer("tally", 1, tally, None, Added | Share)


def latest_layer(latest: Latest) -> Layer:
    return Layer("latest", 2, latest, None, Added, only_last_record=True)
