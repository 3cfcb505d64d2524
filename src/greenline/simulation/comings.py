"""Comings and goings: replicas that arrive, leave, are removed and weigh more or less, as data like any other fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId
from greenline.replication.port import Leave, Weigh
from greenline.simulation.faults import Crash, Fault, OfOne, Part, Partition, Time

if TYPE_CHECKING:
    from greenline.simulation.world import World

TRANSFER = "transfer"
"""The kind of the rows that say that a snapshot is on its way, and from whom."""


class Arrival(OfOne, frozen=True):
    """A newcomer begins its first life. Who has not arrived when the network heals arrives then."""

    kind = "arrival"

    def __str__(self) -> str:
        return f"{self.process} arrives"

    def over(self) -> str:
        return f"{self.process} has arrived"

    def begin(self, world: World) -> None:
        world.arrive(self.process)

    def end(self, world: World) -> None:
        """It stays."""


class Departure(OfOne, frozen=True):
    """An operator asks that a replica leaves: first at `asked`, and elsewhere until somebody answers."""

    asked: ProcId

    kind = "departure"

    def __str__(self) -> str:
        return f"{self.process} is to leave"

    def over(self) -> str:
        return f"{self.process} was asked to leave"

    def begin(self, world: World) -> None:
        if world.operators is not None and not world[self.process].is_gone:
            world.operators.ask(Leave(self.process), first=self.asked)

    def end(self, world: World) -> None:
        """It goes when it is told that it has left."""

    def names(self) -> frozenset[ProcId]:
        return frozenset((self.process, self.asked))

    def without(self, name: ProcId) -> Fault | None:
        if name == self.asked != self.process:
            return msgspec.structs.replace(self, asked=self.process)
        return super().without(name)


class Removal(OfOne, frozen=True):
    """A replica dies, and an operator asks the others to go on without it. It is gone for good once that is answered;
    if it is not by `until`, the operator thinks again, and it starts."""

    is_void: bool = False
    keep: Part = 0.0
    tear: bool = False

    kind = "removal"

    def __str__(self) -> str:
        return f"{self.process} dies, and is to be removed"

    def over(self) -> str:
        return f"{self.process} may start again, unless it is removed"

    @property
    def change(self) -> Leave:
        return Leave(self.process, self.is_void)

    def begin(self, world: World) -> None:
        process = world[self.process]
        process.wanted_down += 1
        process.crash(self.keep, self.tear)

        def part(outcome: Outcome) -> None:
            if outcome.verdict is Verdict.DONE:
                world.part_with(self.process)

        if world.operators is not None and not process.is_gone:
            world.operators.ask(self.change, never=self.process, then=part)

    def end(self, world: World) -> None:
        if world.operators is not None:
            world.operators.give_up(self.change)
        world[self.process].wanted_down -= 1
        world[self.process].start_if_wanted()


class Weighing(OfOne, frozen=True):
    """An operator asks that a replica counts so much."""

    weight: Annotated[int, msgspec.Meta(ge=0)]

    kind = "weighing"

    def __str__(self) -> str:
        return f"{self.process} is to weigh {self.weight}"

    def over(self) -> str:
        return f"{self.process} was to weigh {self.weight}"

    def begin(self, world: World) -> None:
        if world.operators is not None:
            world.operators.ask(Weigh(self.process, self.weight))

    def end(self, world: World) -> None:
        """It is asked for until it is answered."""


class Interception(Fault, frozen=True):
    """Lies in wait until a snapshot is on its way, then strikes `delay` later: who gives it or who takes it crashes, or
    they are cut off from each other, for so long."""

    delay: Time
    strikes: Literal["source", "newcomer", "both"]
    lasts: Time
    keep: Part = 0.0

    kind = "interception"

    def __str__(self) -> str:
        what = "they are cut off from each other" if self.strikes == "both" else f"the {self.strikes} crashes"
        return f"while a snapshot is on its way, {self.delay * 1000:.0f} ms into it: {what}"

    def begin(self, world: World) -> None:
        world.lookouts.setdefault(TRANSFER, []).append(lambda row: world.agenda.after(self.delay, strike, row))

        def strike(row: Row) -> None:
            source, newcomer = row.members or "", row.process
            if world.is_healed or source not in world.processes:
                return
            world.counts["faults during a transfer"] += 1
            at, until = world.agenda.now, world.agenda.now + self.lasts
            if self.strikes == "both":
                others = tuple(name for name in world.names if name not in (source, newcomer))
                sides = ((source, *others), (newcomer, *others))
                world.schedule((Partition(at=at, until=until, sides=sides),))
            else:
                process = source if self.strikes == "source" else newcomer
                world.schedule((Crash(at=at, until=until, process=process, keep=self.keep),))

    def end(self, world: World) -> None:
        """What it did ends by itself."""

    def names(self) -> frozenset[ProcId]:
        return frozenset()

    def without(self, _: ProcId) -> Fault | None:
        return self
