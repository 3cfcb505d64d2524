"""A cluster in a few words: what scenarios are told with.

ring = Cluster("p q r", seed=11).settle()
ring.partition("p | q r").settle()
ring["p"].multicast("alone")
ring.heal().settle()
assert ring["q"].delivered == ["alone"]
assert ring.broken_rules() == []
"""

from __future__ import annotations

from typing import Self

from greenline.kernel import evidence
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId, proc_id
from greenline.kernel.ports import Service
from greenline.simulation.faults import Crash, OneWay, Partition, Pause, Sides
from greenline.simulation.network import Latency
from greenline.simulation.process import Process
from greenline.simulation.subjects import NOTICEBOARD, Subject
from greenline.spec.judge import Broken, Judge
from greenline.trace.story import tell
from greenline.trace.tables import to_table

FOREVER = float("inf")
MOST_STEPS = 100_000


class Stuck(AssertionError):
    """The cluster did not become quiet; the message ends with the last lines of its story."""


class Member:
    """One process, as a scenario speaks of it."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def multicast(self, text: str, service: Service = Service.BASIC) -> None:
        """Ask it to multicast; it must be up, as a scenario knows whom it asks."""
        if not self.process.multicast(text.encode(), service):
            raise ValueError(f"{self.process.name} is down or paused, so it cannot multicast {text!r}")

    @property
    def delivered(self) -> list[str]:
        """The texts that it has delivered in this life."""
        return self.process.app.delivered

    @property
    def phase(self) -> str:
        """The phase that its topmost core is in; empty while it is down."""
        router = self.process.router
        return type(router.layers[0].core.phase).__name__ if router else ""


class Cluster:
    def __init__(
        self, names: str, seed: int = 0, subject: Subject = NOTICEBOARD, latency: Latency | None = None
    ) -> None:
        self.names = tuple(proc_id(name) for name in names.split())
        self.subject = subject
        self.run = f"{subject.name}-{seed}"
        latency = latency or Latency("constant", 0.001)
        self.world = subject.world(self.names, f"{subject.name}/{seed}", latency)
        for process in self.world.processes.values():
            process.start()

    def __getitem__(self, name: ProcId) -> Member:
        return Member(self.world[name])

    @property
    def rows(self) -> list[Row]:
        return self.world.rows

    # What happens. Each returns the cluster, so that a sentence can go on.

    def partition(self, sides: str) -> Self:
        """Cut the network: "p q | r". Whoever is not named is alone. It replaces the partition before it."""
        self._end_cuts()
        return self._begin(Partition(at=self._now, until=FOREVER, sides=self._sides(sides)))

    def one_way(self, senders: str, receivers: str) -> Self:
        """Nothing goes from these to those; the other direction works."""
        cut = OneWay(at=self._now, until=FOREVER, senders=self._known(senders), receivers=self._known(receivers))
        return self._begin(cut)

    def heal(self) -> Self:
        """The network is whole again. Who is down stays down."""
        self._end_cuts()
        self.world.note(evidence.FAULT if self.world.active else evidence.HEALED, "the network heals")
        return self

    def crash(self, name: ProcId, after_orders: int = 0, keep: float = 0.0, tear: bool = False) -> Self:
        """Kill it: now, or after it has carried out so many more orders."""
        (process,) = self._known(name)
        return self._begin(
            Crash(at=self._now, until=FOREVER, process=process, orders=after_orders, keep=keep, tear=tear)
        )

    def restart(self, name: ProcId) -> Self:
        return self._end(Crash, name)

    def pause(self, name: ProcId) -> Self:
        (process,) = self._known(name)
        return self._begin(Pause(at=self._now, until=FOREVER, process=process))

    def resume(self, name: ProcId) -> Self:
        return self._end(Pause, name)

    def wait(self, seconds: float) -> Self:
        self.world.run_until(self._now + seconds)
        return self

    def settle(self) -> Self:
        """Until nothing changes any more."""
        self.world.last_change = self._now
        deadline = self._now + self.subject.patience
        if not self.world.run_until_quiet(self.subject.quiet_for, deadline, self.world.steps + MOST_STEPS):
            last = "\n".join(map(str, list(tell(self.rows))[-20:]))
            raise Stuck(f"not quiet after {self.subject.patience:g} virtual seconds; the story ends with\n{last}")
        self.world.agenda.now = max(self._now, self.world.last_change + self.subject.quiet_for)
        return self

    # What can be asked of it.

    def broken_rules(self) -> list[Broken]:
        """What the specification says of the run so far, which must be quiet."""
        index = sum(row.process == evidence.WORLD for row in self.rows)
        quiet = Row(evidence.WORLD, 0, index, self._now, evidence.QUIET)
        return Judge(self.subject.rules).broken(to_table([(self.run, [*self.rows, quiet])]))

    def ignored(self, reason: str) -> list[ProcId]:
        """Who has ignored something for this reason."""
        return [row.process for row in self.rows if row.kind == evidence.IGNORED and row.detail == reason]

    @property
    def _now(self) -> float:
        return self.world.agenda.now

    def _begin(self, fault: Partition | OneWay | Crash | Pause) -> Self:
        self.world.begin(fault)
        return self

    def _end(self, kind: type[Crash] | type[Pause], name: ProcId) -> Self:
        for fault in self.world.active:
            if isinstance(fault, kind) and fault.process == name:
                self.world.end(fault)
                return self
        raise ValueError(f"{name} is not {'down' if kind is Crash else 'paused'}")

    def _end_cuts(self) -> None:
        for fault in [each for each in self.world.active if isinstance(each, Partition | OneWay)]:
            self.world.end(fault)

    def _sides(self, text: str) -> Sides:
        sides = tuple(self._known(side) for side in text.split("|"))
        named = {name for side in sides for name in side}
        return sides + tuple((name,) for name in self.names if name not in named)

    def _known(self, names: str) -> tuple[ProcId, ...]:
        for name in names.split():
            if name not in self.names:
                raise ValueError(f"there is no process {name!r} here, only {' '.join(self.names)}")
        return tuple(names.split())
