"""A cluster in a few words: what scenarios are told with.

ring = Cluster("p q r", seed=11).settle()
ring.partition("p | q r").settle()
ring["p"].multicast("alone")
ring.heal().settle()
assert ring["q"].delivered == ["alone"]
assert ring.broken_rules() == []
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Self

from greenline.kernel import evidence
from greenline.kernel.actions import Action, Outcome, OutcomeOf
from greenline.kernel.evidence import Row
from greenline.kernel.identities import ProcId, proc_id
from greenline.kernel.ports import Deliver, RegularConf, Service, TransitionalConf
from greenline.replication.port import (
    Accepted,
    Answer,
    Change,
    Forced,
    Joined,
    Left,
    Level,
    Reads,
    Refused,
    Replied,
    Unanswered,
)
from greenline.simulation.databases import Databases
from greenline.simulation.desk import Desk, Override, Question, Submission, read_before
from greenline.simulation.faults import Crash, OneWay, Partition, Pause, Sides
from greenline.simulation.network import Latency
from greenline.simulation.process import Process
from greenline.simulation.subjects import NOTICEBOARD, Subject
from greenline.simulation.tampering import ALWAYS, Packet, Rule, Tampering, Where
from greenline.spec.judge import Broken, Judge
from greenline.trace.story import tell
from greenline.trace.tables import to_table

Event = Accepted | Replied | Answer | Refused | Unanswered | Joined | Left | Forced
"""What a server tells those who ask it, and who runs it."""
FOREVER = float("inf")
MOST_STEPS = 100_000
STEP_S = 0.00025
"""How finely a scenario looks on."""


class Stuck(AssertionError):
    """The cluster did not become quiet, or did not do what it was waited for."""


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
    def history(self) -> list[str]:
        """What it was told in this life: "{p q}" is a regular configuration, "({p})" a transitional one."""
        words: list[str] = []
        for told in self.process.app.told:
            match told:
                case RegularConf(conf):
                    words.append(f"{{{' '.join(conf.members)}}}")
                case TransitionalConf(conf):
                    words.append(f"({{{' '.join(conf.members)}}})")
                case Deliver(_, _, payload):
                    words.append(payload.decode())
        return words

    # Of a replica.

    def submit(self, *operations: str, level: Level = Level.LOCAL) -> None:
        """A new client of this server asks for these together, once; the server must be up."""
        desk = self._open_desk(" ; ".join(operations))
        desk.load.submit_together(desk, operations, level)

    def act(
        self,
        session: str,
        number: int,
        text: str,
        received: int = 0,
        relaxed: bool = False,
        reads: tuple[tuple[str, str], ...] = (),
        level: Level = Level.LOCAL,
    ) -> int:
        """This very action; `reads`: what was asked before, and what the answer was. Returns the ticket."""
        presented = tuple(read_before(*read) for read in reads)
        action = Action(session, number, text.encode(), received, relaxed, presented)
        told = f"{text} if {' '.join(rows for _, rows in reads)}" if reads else text
        return self._open_desk(text).submit(Submission((action,), (told,), level))

    def ask(
        self, request: str | OutcomeOf, reads: Reads = Reads.STRICT, after: int = 0, is_patient: bool = True
    ) -> int:
        """A query of a new client; returns the ticket."""
        desk = self._open_desk(str(request))
        asked = request.encode() if isinstance(request, str) else request
        return desk.ask(Question(f"{desk.load.new_client(desk)}?1", asked, reads, after, is_patient))

    def answer_of(self, ticket: int) -> Answer | None:
        """To what was asked in this life, if it has come."""
        return self._desk.found.get(ticket)

    def answers_of(self, ticket: int) -> list[str]:
        """The rows that answered a query of this life: none yet, or one."""
        answer = self.answer_of(ticket)
        return [] if answer is None else [answer.rows.decode()]

    def reconfigure(self, change: Change) -> int:
        """An operator asks for a change of the cluster; returns the ticket."""
        return self._open_desk(str(change)).reconfigure(change)

    def force(self, survivors: str, dead: str, reason: str) -> int:
        """An operator decides who survives: "p q"; returns the ticket."""
        override = Override(tuple(survivors.split()), tuple(dead.split()), reason)
        return self._open_desk(reason).force(override)

    def told_of(self, ticket: int) -> list[Event]:
        """What this life said to whoever has this ticket."""
        return [each for each in self.events if not isinstance(each, Joined | Left) and each.ticket == ticket]

    @property
    def events(self) -> list[Event]:
        """All that it said to its clients and operators in this life, and of itself."""
        return [each for each in self._desk.told if isinstance(each, Event)]

    @property
    def outcomes(self) -> list[Outcome]:
        """Of what it was asked in this life and is green, also of changes of the cluster, in the order they came in."""
        return self._desk.outcomes

    @property
    def answers(self) -> list[str]:
        """What those outcomes say."""
        return self._desk.answers

    @property
    def accepted(self) -> int:
        """How many submissions of this life are safe here: red, or more."""
        return self._desk.accepted

    @property
    def refusals(self) -> list[str]:
        """Why submissions of this life were refused."""
        return self._desk.refusals

    @property
    def state(self) -> str:
        """The state that its engine is in."""
        return self.phase

    @property
    def position(self) -> int:
        """The green position that its database stands at."""
        return self._databases.places[self.process.name].database.position

    @property
    def database(self) -> str:
        """What its database comes to."""
        return self._databases.digest(self.process.name)

    def read(self, request: str) -> str:
        """What its database says, as it is, whoever may see that: "read l1"."""
        return self._databases.query(self.process.name, request)

    @property
    def _databases(self) -> Databases:
        return self._desk.load.databases

    def _open_desk(self, text: str) -> Desk:
        if not self.process.is_running:
            raise ValueError(f"{self.process.name} is down or paused, so it cannot be asked {text!r}")
        return self._desk

    @property
    def _desk(self) -> Desk:
        if not isinstance(self.process.app, Desk):
            raise TypeError(f"{self.process.name} is no replica: it has no clients and no database")
        return self.process.app

    @property
    def phase(self) -> str:
        """The phase that its topmost core is in; empty while it is down."""
        router = self.process.router
        return type(router.layers[0].core.phase).__name__ if router else ""


class Cluster:
    def __init__(
        self,
        names: str,
        seed: int = 0,
        subject: Subject = NOTICEBOARD,
        latency: Latency | None = None,
        mutant: str | None = None,
        down: str = "",
        newcomers: str = "",
    ) -> None:
        founders, others = (tuple(proc_id(name) for name in each.split()) for each in (names, newcomers))
        self.names = founders + others
        """Everybody who was, is or will be there."""
        self.subject = subject
        self.run = f"{subject.name}-{seed}"
        latency = latency or Latency("constant", 0.001)
        self.world = subject.world(founders, f"{subject.name}/{seed}", latency, mutant, others)
        self._tampering: Tampering | None = None
        for name in founders:
            if name not in down.split():
                self.world[name].start()

    def __getitem__(self, name: ProcId) -> Member:
        return Member(self.world[name])

    @property
    def living(self) -> tuple[ProcId, ...]:
        """All but those who were stopped for good."""
        return self.world.living

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
        """Begin its next life; the first one of a newcomer."""
        return self.start(name) if name in self.world.expected else self._end(Crash, name)

    def part_with(self, name: ProcId) -> Self:
        """Stop it for good: nobody expects it to come back."""
        self.world.part_with(name)
        return self

    def pause(self, name: ProcId) -> Self:
        (process,) = self._known(name)
        return self._begin(Pause(at=self._now, until=FOREVER, process=process))

    def resume(self, name: ProcId) -> Self:
        return self._end(Pause, name)

    def start(self, name: ProcId) -> Self:
        """Begin the first life of one that was down: a newcomer arrives."""
        if name in self.world.expected:
            self.world.arrive(name)
        else:
            self.world[name].start()
        return self

    def lose(
        self,
        *kinds: type[Any],
        frm: str = "",
        to: str = "",
        where: Where = lambda _: True,
        skip: int = 0,
        times: int = 1,
        do: Callable[[], object] | None = None,
    ) -> Self:
        """The next packet of these kinds is lost, or the next so many; from anybody to anybody, if nothing is said."""
        return self._tamper(kinds, frm, to, where, skip, times, (), do)

    def delay(
        self,
        *kinds: type[Any],
        by: float,
        frm: str = "",
        to: str = "",
        where: Where = lambda _: True,
        skip: int = 0,
        times: int = 1,
    ) -> Self:
        return self._tamper(kinds, frm, to, where, skip, times, (by,), None)

    def copy(
        self,
        *kinds: type[Any],
        after: tuple[float, ...],
        frm: str = "",
        to: str = "",
        where: Where = lambda _: True,
        skip: int = 0,
        times: int = 1,
    ) -> Self:
        """It arrives as usual, and again so much later."""
        return self._tamper(kinds, frm, to, where, skip, times, (0.0, *after), None)

    def when(
        self,
        *kinds: type[Any],
        do: Callable[[], object],
        frm: str = "",
        to: str = "",
        where: Where = lambda _: True,
        skip: int = 0,
        at_once: bool = False,
    ) -> Self:
        """Do something when such a packet leaves; at once: before its sender does anything else."""
        return self._tamper(kinds, frm, to, where, skip, 1, (0.0,), do, at_once=at_once)

    def watch(self, *kinds: type[Any], frm: str = "", to: str = "") -> list[Any]:
        """Every packet of these kinds from now on, once for each receiver; nothing happens to them."""
        seen: list[Any] = []

        def note(message: Any) -> bool:
            seen.append(message)
            return False

        self._tamper(kinds, frm, to, note, 0, ALWAYS, (0.0,), None)
        return seen

    def put_aside(
        self, *kinds: type[Any], frm: str = "", to: str = "", where: Where = lambda _: True, times: int = 1
    ) -> list[Packet]:
        """They do not arrive, until somebody hands them over."""
        kept: list[Packet] = []
        self._tamper(kinds, frm, to, where, 0, times, (), None, kept)
        return kept

    def hand_over(self, packets: list[Packet], to: str) -> Self:
        """What was put aside arrives now, at these; its sender may be dead by now."""
        for sender, receiver, frame in packets:
            if receiver in self._known(to):
                self.world[receiver].arrive(sender, frame)
        return self

    def wait_until(self, condition: Callable[[], bool], at_most: float = 5.0) -> Self:
        """In small steps, until it holds."""
        end = self._now + at_most
        while not condition():
            if self._now > end:
                raise Stuck(f"what a scenario waits for did not happen within {at_most:g} virtual seconds")
            self.wait(STEP_S)
        return self

    def let_be(self) -> Self:
        """Tamper with nothing any more."""
        if self._tampering is not None:
            self._tampering.end()
        return self

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
        return broken_rules(self.subject.rules, [self])

    def quiet_rows(self) -> list[Row]:
        """The rows so far, and the word that nothing changes any more."""
        index = sum(row.process == evidence.WORLD for row in self.rows)
        finals = [] if self.subject.finals is None else list(self.subject.finals(self.world))
        last: list[tuple[str, dict[str, Any]]] = [*((evidence.FINAL, each) for each in finals), (evidence.QUIET, {})]
        return [
            *self.rows,
            *(Row(evidence.WORLD, 0, index + n, self._now, kind, **each) for n, (kind, each) in enumerate(last)),
        ]

    def ignored(self, reason: str) -> list[ProcId]:
        """Who has ignored something for this reason."""
        return [row.process for row in self.rows if row.kind == evidence.IGNORED and row.detail == reason]

    def _tamper(
        self,
        kinds: tuple[type[Any], ...],
        frm: str,
        to: str,
        where: Where,
        skip: int,
        times: int,
        delays: tuple[float, ...],
        do: Callable[[], object] | None,
        kept: list[Packet] | None = None,
        at_once: bool = False,
    ) -> Self:
        if self._tampering is None:
            self._tampering = Tampering(self.world)
        senders, receivers = (frozenset(self._known(names) or self.names) for names in (frm, to))
        self._tampering.add(Rule(kinds, senders, receivers, where, skip, times, delays, do, at_once, kept))
        return self

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


@cache
def _judge(rules: tuple[str, ...]) -> Judge:
    return Judge(rules)


def broken_rules(rules: tuple[str, ...], clusters: list[Cluster]) -> list[Broken]:
    """What the specification says of several clusters, judged together."""
    runs = ((f"{cluster.run}-{place}", cluster.quiet_rows()) for place, cluster in enumerate(clusters))
    return _judge(rules).broken(to_table(runs))
