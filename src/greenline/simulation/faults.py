"""Faults: everything that can go wrong, as data (`simulation.schedule` has them all).

Each fault begins at `at` and ends at `until` (virtual seconds), can stand alone, and overlaps with any other:
rates combine and delays add up the way independent causes do, and a link is cut, a process paused or down, while
any fault wants it so. Replicas that come and go are in `simulation.comings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import msgspec

from greenline.kernel.identities import ProcId

if TYPE_CHECKING:
    from greenline.simulation.network import Link
    from greenline.simulation.world import World

Sides = tuple[tuple[ProcId, ...], ...]


Time = Annotated[float, msgspec.Meta(ge=0)]
"""Virtual seconds. What a plan says is checked when it is read: nobody can be paused into the past."""
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    at: Time
    until: Time

    kind = "fault"
    """What `--only` calls it, and what it is counted as."""

    def begin(self, world: World) -> None:
        raise NotImplementedError

    def end(self, world: World) -> None:
        raise NotImplementedError

    def over(self) -> str:
        """How its end is told."""
        return f"over: {self}"

    def moved_to(self, at: float) -> Self:
        """The same, beginning at another time."""
        return msgspec.structs.replace(self, at=at, until=at + self.until - self.at)

    def names(self) -> frozenset[ProcId]:
        """The processes that it names."""
        raise NotImplementedError

    def without(self, name: ProcId) -> Fault | None:
        """The same in a world without that process; None if nothing is left of it."""
        raise NotImplementedError


class Weather(Fault, frozen=True):
    """Every packet, wherever it goes, is lost, duplicated or overtaken at this rate."""

    what: Literal["loss", "duplication", "reordering"]
    rate: Part

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.what

    def __str__(self) -> str:
        return f"{self.what} of {self.rate:.0%} of all packets"

    def begin(self, world: World) -> None:
        self._combine(world)

    def end(self, world: World) -> None:
        self._combine(world)

    def _combine(self, world: World) -> None:
        spared = 1.0
        for fault in world.active:
            if isinstance(fault, Weather) and fault.what == self.what:
                spared *= 1 - fault.rate
        setattr(world.network, self.what, 1 - spared)

    def names(self) -> frozenset[ProcId]:
        return frozenset()

    def without(self, _: ProcId) -> Fault | None:
        return self


class _Cut(Fault, frozen=True):
    """A fault that cuts links while it lasts."""

    def links(self, world: World) -> list[Link]:
        raise NotImplementedError

    def begin(self, world: World) -> None:
        for link in self.links(world):
            link.cuts += 1

    def end(self, world: World) -> None:
        for link in self.links(world):
            link.cuts -= 1


class Partition(_Cut, frozen=True):
    """Who is on no side together hears nothing of each other. Sides may overlap: hearing is then not transitive."""

    sides: Sides

    kind = "partition"

    def __str__(self) -> str:
        return "partition " + " | ".join(" ".join(side) for side in self.sides)

    def links(self, world: World) -> list[Link]:
        return world.network.across(self.sides)

    def names(self) -> frozenset[ProcId]:
        return frozenset().union(*self.sides)

    def without(self, name: ProcId) -> Fault | None:
        left = tuple(filter(None, (tuple(each for each in side if each != name) for side in self.sides)))
        return msgspec.structs.replace(self, sides=left) if len(left) > 1 else None


class OneWay(_Cut, frozen=True):
    """Packets from these to those are lost; the other direction works."""

    senders: tuple[ProcId, ...]
    receivers: tuple[ProcId, ...]

    kind = "one-way"

    def __str__(self) -> str:
        return f"nothing goes from {' '.join(self.senders)} to {' '.join(self.receivers)}"

    def links(self, world: World) -> list[Link]:
        return world.network.between(self.senders, self.receivers)

    def names(self) -> frozenset[ProcId]:
        return frozenset(self.senders + self.receivers)

    def without(self, name: ProcId) -> Fault | None:
        senders = tuple(each for each in self.senders if each != name)
        receivers = tuple(each for each in self.receivers if each != name)
        return msgspec.structs.replace(self, senders=senders, receivers=receivers) if senders and receivers else None


class Spike(Fault, frozen=True):
    """Packets between these take longer for a while."""

    between: tuple[ProcId, ...]
    delay: Time

    kind = "spike"

    def __str__(self) -> str:
        return f"packets between {' '.join(self.between)} take {self.delay * 1000:.0f} ms longer"

    def begin(self, world: World) -> None:
        for link in world.network.between(self.between, self.between):
            link.delays += self.delay

    def end(self, world: World) -> None:
        for link in world.network.between(self.between, self.between):
            link.delays = max(0.0, link.delays - self.delay)

    def names(self) -> frozenset[ProcId]:
        return frozenset(self.between)

    def without(self, name: ProcId) -> Fault | None:
        left = tuple(each for each in self.between if each != name)
        return msgspec.structs.replace(self, between=left) if len(left) > 1 else None


class OfOne(Fault, frozen=True):
    """A fault of a single process."""

    process: ProcId

    def names(self) -> frozenset[ProcId]:
        return frozenset((self.process,))

    def without(self, name: ProcId) -> Fault | None:
        return None if name == self.process else self


class Crash(OfOne, frozen=True):
    """The process dies before its next order but `orders`, and starts again at `until`."""

    orders: Annotated[int, msgspec.Meta(ge=0)] = 0
    keep: Part = 0.0
    tear: bool = False

    kind = "crash"

    def __str__(self) -> str:
        when = f" {self.orders} orders later" if self.orders else ""
        disk = "and what it had not forced is lost"
        if self.keep or self.tear:
            disk = f"{self.keep:.0%} of what it had not forced survives" + (
                ", the next record torn" if self.tear else ""
            )
        return f"{self.process} crashes{when}, {disk}"

    def over(self) -> str:
        return f"{self.process} may start again"

    def begin(self, world: World) -> None:
        process = world[self.process]
        process.wanted_down += 1
        if self.orders and process.is_up:
            process.fuses[id(self)] = self.orders, lambda: process.crash(self.keep, self.tear)
        else:
            process.crash(self.keep, self.tear)

    def end(self, world: World) -> None:
        process = world[self.process]
        process.wanted_down -= 1
        process.fuses.pop(id(self), None)
        process.start_if_wanted()


class Pause(OfOne, frozen=True):
    kind = "pause"

    def __str__(self) -> str:
        return f"{self.process} is paused"

    def over(self) -> str:
        return f"{self.process} goes on"

    def begin(self, world: World) -> None:
        world[self.process].pause()

    def end(self, world: World) -> None:
        world[self.process].resume()


class SlowReceiver(OfOne, frozen=True):
    """Each packet takes this long to take in, and few fit the buffer."""

    service: Time
    buffer: Annotated[int, msgspec.Meta(ge=1)]

    kind = "slow-receiver"

    def __str__(self) -> str:
        return f"{self.process} takes {self.service * 1000:.0f} ms a packet and keeps {self.buffer}"

    def begin(self, world: World) -> None:
        self._combine(world)

    def end(self, world: World) -> None:
        self._combine(world)

    def _combine(self, world: World) -> None:
        at_work = [each for each in world.active if isinstance(each, SlowReceiver) and each.process == self.process]
        if at_work:
            slowest, smallest = max(each.service for each in at_work), min(each.buffer for each in at_work)
            world[self.process].receive_at(slowest, smallest)
        else:
            world[self.process].receive_at_full_speed()


class SlowDisk(OfOne, frozen=True):
    factor: Annotated[float, msgspec.Meta(ge=1, le=1e6)]

    kind = "disk-slow"

    def __str__(self) -> str:
        return f"the disk of {self.process} is {self.factor:.0f} times slower"

    def begin(self, world: World) -> None:
        world[self.process].disk.slowness *= self.factor

    def end(self, world: World) -> None:
        world[self.process].disk.slowness /= self.factor


class FullDisk(OfOne, frozen=True):
    """Writes fail, so the node halts; when there is space again it starts from what it had."""

    kind = "disk-full"

    def __str__(self) -> str:
        return f"the disk of {self.process} is full"

    def begin(self, world: World) -> None:
        world[self.process].disk.full_for += 1

    def end(self, world: World) -> None:
        world[self.process].disk.full_for -= 1
        world[self.process].start_if_wanted()


class FailingDisk(OfOne, frozen=True):
    """The next forced write fails, so the node halts, and starts again at `until`."""

    kind = "disk-fail"

    def __str__(self) -> str:
        return f"the next forced write of {self.process} fails"

    def begin(self, world: World) -> None:
        world[self.process].disk.failures.append(self)

    def end(self, world: World) -> None:
        failures = world[self.process].disk.failures
        failures[:] = [each for each in failures if each is not self]
        world[self.process].start_if_wanted()


class Skew(OfOne, frozen=True):
    """The process's clock is off by `offset` seconds and runs at `rate`."""

    offset: float
    rate: Annotated[float, msgspec.Meta(gt=0)]

    kind = "skew"

    def __str__(self) -> str:
        return f"the clock of {self.process} is {self.offset:+.1f} s off and runs at {self.rate:.2f}"

    def begin(self, world: World) -> None:
        world[self.process].set_clock(self.offset, self.rate)

    def end(self, world: World) -> None:
        """A clock that has been off is not set right by a network that heals."""


class Ambush(Fault, frozen=True):
    """Lies in wait until membership is changing, then strikes in the middle of it, `delay` after it was noticed.

    The fault inside counts its times from there. If nothing changes within `patience`, the bait provokes a change.
    """

    delay: Time
    patience: Time
    bait: Partition
    fault: Crash | Partition

    kind = "ambush"

    def __str__(self) -> str:
        return f"while membership changes, {self.delay * 1000:.0f} ms into it: {self.fault}"

    def begin(self, world: World) -> None:
        def lie_in_wait() -> None:
            if world.is_unsettled:
                world.agenda.after(self.delay, strike)
            else:
                world.ambushes.append(lie_in_wait)

        def strike() -> None:
            if not world.is_unsettled:
                lie_in_wait()  # it was over sooner than we struck
            elif not world.is_healed:
                struck.append(True)
                world.counts["faults during membership changes"] += 1
                world.schedule((self.fault.moved_to(world.agenda.now),))

        def provoke() -> None:
            if not struck:
                world.schedule((self.bait.moved_to(world.agenda.now),))

        struck: list[bool] = []
        lie_in_wait()
        world.agenda.after(self.patience, provoke)

    def end(self, world: World) -> None:
        """What it did ends by itself."""

    def names(self) -> frozenset[ProcId]:
        return self.bait.names() | self.fault.names()

    def without(self, name: ProcId) -> Fault | None:
        bait, fault = self.bait.without(name), self.fault.without(name)
        return msgspec.structs.replace(self, bait=bait, fault=fault) if bait and fault else None


class Blackout(Fault, frozen=True):
    """Everybody crashes at about the same time, and comes back one by one. The crashes count their times from it."""

    crashes: tuple[Crash, ...]

    kind = "blackout"

    def __str__(self) -> str:
        return f"the power fails: {' '.join(crash.process for crash in self.crashes)} crash"

    def over(self) -> str:
        return "the power is back"

    def begin(self, world: World) -> None:
        world.schedule(tuple(crash.moved_to(self.at + crash.at) for crash in self.crashes))

    def end(self, world: World) -> None:
        """Each crash ends by itself."""

    def names(self) -> frozenset[ProcId]:
        return frozenset(crash.process for crash in self.crashes)

    def without(self, name: ProcId) -> Fault | None:
        left = tuple(crash for crash in self.crashes if crash.process != name)
        return msgspec.structs.replace(self, crashes=left) if left else None


def flapping(sides: Sides, at: float, until: float, period: float) -> tuple[Partition, ...]:
    """A partition that comes and goes: cut for half of each period."""
    cuts = max(1, round((until - at) / period))
    return tuple(Partition(at=at + n * period, until=at + (n + 0.5) * period, sides=sides) for n in range(cuts))
