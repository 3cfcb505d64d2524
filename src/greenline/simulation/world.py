"""The world: processes, the network between them, their disks, virtual time, and the trace of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Protocol

from greenline.database.memory import MemorySqlite
from greenline.kernel import evidence
from greenline.kernel.actions import Outcome
from greenline.kernel.evidence import WORLD, Row
from greenline.kernel.identities import ProcId
from greenline.kernel.orders import Ask
from greenline.kernel.router import Layer, Router
from greenline.replication.port import Change
from greenline.simulation.agenda import Agenda
from greenline.simulation.applications import Application, Speaker
from greenline.simulation.disk import Disk
from greenline.simulation.network import Latency, Network
from greenline.simulation.process import Process
from greenline.simulation.schedule import AnyFault, Schedule

Build = Callable[[ProcId, tuple[ProcId, ...], Random], Sequence[Layer]]
"""Makes the cores of one process, the topmost first: its name, the founders' names, and its chance."""
Port = Callable[[ProcId, Ask], tuple[Any, float] | None]
"""Answers a `Call`: the result and the seconds that it takes; or later, through `Process.answer`."""

RESTART_S = 0.05
"""How soon after healing a node that has halted is started again."""

_CHANGES = evidence.EVIDENCE | {evidence.PHASE}
_CONFIGURATIONS = frozenset({evidence.REGULAR, evidence.TRANSITIONAL})
_DEATHS = frozenset({evidence.CRASH, evidence.HALT})


class Operators(Protocol):
    """Those who ask for changes of a cluster."""

    def ask(
        self,
        change: Change,
        first: ProcId | None = None,
        never: ProcId | None = None,
        then: Callable[[Outcome], None] | None = None,
    ) -> None:
        """Of this server first, then of others, but not of that one, until somebody answers; then do this."""

    def give_up(self, change: Change) -> None:
        """It is not asked again."""


class World:
    def __init__(
        self,
        names: tuple[ProcId, ...],
        seed: str,
        build: Build,
        *,
        newcomers: tuple[ProcId, ...] = (),
        latency: Latency | None = None,
        unsettled: frozenset[str] = frozenset(),
        restless: frozenset[str] = frozenset(),
        ports: dict[str, Port] | None = None,
    ) -> None:
        self.founders = names
        self.names = names = names + newcomers
        self.application: Callable[[Process], Application] = Speaker
        """Who stands on top of each life of a process."""
        self.database: type[MemorySqlite] = MemorySqlite
        """What stands behind a process that has a database."""
        self.at_death: list[Callable[[Process, bool], None]] = []
        """Who is told of each death, and whether the power went with it: whether the disk lost what was not forced."""
        self.at_healing: list[Callable[[], None]] = []
        """Who is told when everything is well again."""
        self.complaints: list[Callable[[], Iterable[str]]] = []
        """Who says, when nothing changes any more, what is still waited for."""
        self.operators: Operators | None = None
        self.agenda = Agenda()
        self.network = Network(self.agenda, names, seed, latency or Latency(), self._arrive)
        self.processes = {name: Process(self, name, Disk(self.agenda, Random(f"{seed}/disk/{name}"))) for name in names}
        self.expected = set(newcomers)
        """Who has not arrived yet."""
        for name in newcomers:
            self.processes[name].wanted_down += 1
        self.ports = ports or {}
        self.rows: list[Row] = []
        self.counts: Counter[str] = Counter()
        self.steps = 0
        self.digest = 0
        """Chained over every frame that was sent or written: two runs that differ anywhere differ here."""
        self.last_change = 0.0
        """When evidence or a phase was last seen."""
        self.watch_packets: Callable[[ProcId, tuple[ProcId, ...], bytes], None] | None = None
        self.ambushes: list[Callable[[], None]] = []
        """What waits for some core to enter an unsettled phase."""
        self.lookouts: dict[str, list[Callable[[Row], None]]] = {}
        """What waits for the next row of a kind."""
        self._phases: dict[tuple[ProcId, str | None], str | None] = {}
        self.active: list[AnyFault] = []
        """The faults at work."""
        self.is_healed = False
        self.is_healing = False
        self.chance = Random(f"{seed}/world")
        self._seed = seed
        self._build = build
        self._unsettled = unsettled
        self._restless = restless
        self._own_rows = 0
        self._next_index: dict[tuple[ProcId, int], int] = {}
        self._confs: dict[tuple[ProcId, int], str | None] = {}
        """The configuration that each life was told last, and lived to be told."""

    def build(self, name: ProcId, life: int) -> Router:
        layers = self._build(name, self.founders, Random(f"{self._seed}/core/{name}/{life}"))
        return Router(name, self.names, layers)

    def __getitem__(self, name: ProcId) -> Process:
        return self.processes[name]

    @property
    def living(self) -> tuple[ProcId, ...]:
        """All but those who were stopped for good."""
        return tuple(name for name in self.names if not self.processes[name].is_gone)

    @property
    def is_working(self) -> bool:
        """Does some process wait for its disk, or for a port outside?"""
        return any(process.working for process in self.processes.values())

    @property
    def is_unsettled(self) -> bool:
        """Is some process in a phase in which membership changes?"""
        return any(phase in self._unsettled for phase in self._phases.values())

    @property
    def is_restless(self) -> bool:
        """Is some process in a phase that it will leave by itself?"""
        return any(phase in self._restless for phase in self._phases.values())

    @property
    def phases(self) -> set[str | None]:
        """In which phases some core is now."""
        return set(self._phases.values())

    # Running.

    def run_until(self, time: float) -> None:
        """Let everything happen up to this time."""
        agenda = self.agenda
        while (due := agenda.next_time()) is not None and due <= time:
            agenda.step()
        agenda.now = max(agenda.now, time)

    def run_until_quiet(self, quiet_for: float, deadline: float, most_steps: int) -> bool:
        """Until nothing has changed for so long, and nobody is about to; False if somebody still is at the deadline."""
        agenda = self.agenda
        while (due := agenda.next_time()) is not None and (
            due <= self.last_change + quiet_for or self.is_working or self.is_restless
        ):
            if due > deadline or self.steps > most_steps:
                return False
            agenda.step()
        return True

    # Faults.

    def schedule(self, faults: Schedule) -> None:
        for fault in faults:
            self.agenda.at(fault.at, self.begin, fault)

    def begin(self, fault: AnyFault) -> None:
        if self.is_healed:
            return
        self.counts[f"faults: {fault.kind}"] += 1
        self.note(evidence.FAULT, str(fault))
        self.active.append(fault)
        fault.begin(self)
        self.agenda.at(fault.until, self.end, fault)

    def end(self, fault: AnyFault) -> None:
        for place, active in enumerate(self.active):
            if active is fault:
                del self.active[place]
                self.note(evidence.FAULT, fault.over())
                fault.end(self)
                return

    def heal(self) -> None:
        """All faults end, whoever is down starts, and none comes after."""
        self.is_healed = self.is_healing = True
        while self.active:
            self.end(self.active[-1])
        self.is_healing = False  # nobody starts before the last fault is over
        self.note(evidence.HEALED, "the network heals, and everybody is up")
        for name in self.names:
            self.arrive(name)
            self.processes[name].start_if_wanted()
        self.last_change = self.agenda.now
        for tell in self.at_healing:
            tell()

    def arrive(self, name: ProcId) -> None:
        """A newcomer begins its first life, if it has not yet."""
        if name in self.expected:
            self.expected.discard(name)
            self.processes[name].wanted_down -= 1
            self.processes[name].start_if_wanted()

    def part_with(self, name: ProcId) -> None:
        """Stop a process for good: it has left, or was removed."""
        process = self.processes[name]
        if not process.is_gone:
            self.counts["processes stopped for good"] += 1
            self.note(evidence.GONE, members=name)
            process.is_gone = True
            process.crash(keep=1.0)

    def still_waiting(self) -> list[str]:
        """What somebody waits for, though nothing changes any more."""
        busy = [name for name, process in self.processes.items() if process.app.is_kept_waiting]
        said = [f"the port of {' '.join(busy)} was busy and never became ready"] if busy else []
        return said + [each for complain in self.complaints for each in complain()]

    def _arrive(self, sender: ProcId, receiver: ProcId, frame: bytes) -> None:
        self.processes[receiver].arrive(sender, frame)

    # The trace.

    def add_row(self, row: Row) -> None:
        self.rows.append(row)
        self._next_index[row.process, row.incarnation] = row.local_index + 1
        kind = row.kind
        if kind in self.lookouts:
            for look in self.lookouts.pop(kind):
                look(row)
        if kind in _CHANGES:
            self.last_change = self.agenda.now
            self.counts[kind] += 1
            if kind in _CONFIGURATIONS:
                self._confs[row.process, row.incarnation] = row.conf
            if kind == evidence.PHASE:
                self._phases[row.process, row.layer] = row.detail
                if row.detail in self._unsettled and self.ambushes:
                    waiting, self.ambushes = self.ambushes, []
                    for lie_in_wait in waiting:
                        lie_in_wait()
            elif kind in _DEATHS:
                self._phases = {key: phase for key, phase in self._phases.items() if key[0] != row.process}

    def note(self, kind: str, detail: str | None = None, **columns: Any) -> None:
        """What befalls the run as a whole, and what its users see: all by one clock."""
        self.rows.append(Row(WORLD, 0, self._own_rows, self.agenda.now, kind, detail=detail, **columns))
        self._own_rows += 1
        if kind in evidence.EVIDENCE:
            self.last_change = self.agenda.now

    def note_crash(self, process: Process) -> None:
        """A life that has a row ends with this one; one that died before its incarnation was durable never was."""
        assert process.router is not None
        incarnation = process.router.incarnation
        index = self._next_index.get((process.name, incarnation))
        if index is None:
            self.counts["crashes while booting"] += 1
            self.note(evidence.FAULT, f"{process.name} crashed while it booted")
            return
        conf = self._confs.get((process.name, incarnation))
        self.add_row(Row(process.name, incarnation, index, process.clock(), evidence.CRASH, conf=conf))

    def note_halt(self, process: Process, reason: str) -> None:
        """The router has said it in the trace, unless the life never began. After healing it starts again by itself."""
        assert process.router is not None
        if self.is_healed and not reason.startswith(evidence.IMPOSSIBLE):
            self.agenda.after(RESTART_S, process.start_if_wanted)
        if (process.name, process.router.incarnation) not in self._next_index:
            self.counts["halts while booting"] += 1
            self.note(evidence.FAULT, f"{process.name} halted while it booted: {reason}")
