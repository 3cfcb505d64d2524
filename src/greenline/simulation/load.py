"""The load on replicas: clients in sessions, who ask one server at a time and note what they asked and were told.

A session has a window: so many submissions may be unanswered at the server that it is bound to, and the next ones wait.
It moves on when a request of it names another server, or when its server has died: what is unanswered then stays so,
as nobody asks twice. All clients write by one clock.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from greenline.kernel import evidence
from greenline.kernel.actions import Action, pack
from greenline.kernel.identities import ProcId
from greenline.replication.core import Boot, Engine
from greenline.replication.port import Accepted, Level, Refused, Replied, Submit
from greenline.replication.replica import Replica
from greenline.simulation.applications import Application
from greenline.simulation.databases import Databases
from greenline.simulation.mutants.mutant import Wrapped
from greenline.simulation.process import Process
from greenline.simulation.requests import Request
from greenline.simulation.world import World

BETWEEN = " ; "
"""Between the operations of one submission."""
RED = "red"
GREEN = "green"


@dataclass(frozen=True)
class Submission:
    session: str
    actions: tuple[Action, ...]
    level: Level


@dataclass
class Session:
    """One client, as it stands."""

    desk: Desk | None = None
    unanswered: int = 0
    waiting: deque[Request] = field(default_factory=deque)


class Desk(Application):
    """Where the clients of one server are served, in one life of it."""

    def __init__(self, process: Process, load: Load) -> None:
        super().__init__(process)
        self.load = load
        self.submissions: dict[int, Submission] = {}
        self.unanswered: set[int] = set()
        self.accepted = 0
        self.answers: list[str] = []
        """The outcomes of what is green, in the order in which they came."""
        self.refusals: list[str] = []

    def take(self, request: Request) -> bool:
        return self.process.is_running and self.load.take(self, request)

    def submit(self, submission: Submission) -> int:
        """Hand it to the engine; the ticket says which answers are its own."""
        process, router = self.process, self.process.router
        assert router is not None, "who is asked is up"
        ticket = len(self.submissions) + 1
        self.submissions[ticket] = submission
        self.unanswered.add(ticket)
        for action in submission.actions:
            self._note(evidence.CALL, action, submission.level, action.body.decode(), members=process.name)
        actions = submission.actions
        process.perform(router.ask(process.clock(), Submit(ticket, pack(actions), len(actions), submission.level)))
        return ticket

    def submit_together(self, operations: tuple[str, ...], level: Level) -> int:
        """As a session of this process, whatever else it waits for."""
        session = f"at-{self.process.name}"
        actions = tuple(Action(session, self.load.next_number(session), each.encode()) for each in operations)
        self.load.sessions.setdefault(session, Session())
        return self.submit(Submission(session, actions, level))

    def hear(self, upcall: Any) -> None:
        super().hear(upcall)
        match upcall:
            case Accepted(ticket):
                self.accepted += 1
                submission = self.submissions[ticket]
                for action in submission.actions:
                    self._note(evidence.RETURN, action, submission.level, colour=RED, members=self.process.name)
            case Replied(ticket, position, first, outcomes, level):
                submission = self.submissions[ticket]
                for place, (action, outcome) in enumerate(zip(submission.actions, outcomes, strict=True)):
                    text = outcome.decode()
                    self.answers.append(text)
                    columns = {"colour": GREEN, "position": position, "sub": first + place}
                    self._note(evidence.RETURN, action, level, text, members=self.process.name, **columns)
                self._answered(ticket, submission)
            case Refused(ticket, reason):
                submission = self.submissions[ticket]
                self.refusals.append(reason)
                for action in submission.actions:
                    self._note(evidence.REFUSED, action, submission.level, reason, members=self.process.name)
                self._answered(ticket, submission)

    def _answered(self, ticket: int, submission: Submission) -> None:
        if ticket in self.unanswered:
            self.unanswered.discard(ticket)
            self.load.answered(self, submission.session)

    def _note(self, kind: str, action: Action, level: Level, detail: str | None = None, **columns: Any) -> None:
        self.load.world.note(kind, detail, message=str(action), service=level.value, **columns)


class Load:
    """Brings the clients into a world, and its databases."""

    def __init__(self, world: World, seed: str) -> None:
        self.world = world
        self.databases = Databases(world, seed)
        self.sessions: dict[str, Session] = {}
        self._numbers: dict[str, int] = {}
        """Of the sessions that are numbered here, and not in a plan."""
        world.application = lambda process: Desk(process, self)
        for process in world.processes.values():
            process.app = world.application(process)

    def next_number(self, session: str) -> int:
        self._numbers[session] = self._numbers.get(session, 0) + 1
        return self._numbers[session]

    def take(self, desk: Desk, request: Request) -> bool:
        session = self.sessions.setdefault(submission_of(request).session, Session())
        if session.desk is not desk:
            self.world.counts["requests given up by those who moved on"] += len(session.waiting)
            session.desk, session.unanswered = desk, 0
            session.waiting.clear()
        session.waiting.append(request)
        self._go_on(desk, session)
        return True

    def answered(self, desk: Desk, name: str) -> None:
        session = self.sessions[name]
        if session.desk is desk:
            session.unanswered -= 1
            desk.process.later(0.0, self._go_on, desk, session)

    def _go_on(self, desk: Desk, session: Session) -> None:
        """Ask what waits, as far as the window allows."""
        while session.desk is desk and session.waiting and session.unanswered < session.waiting[0].window:
            if not desk.process.is_running:
                return
            session.unanswered += 1
            desk.submit(submission_of(session.waiting.popleft()))


def finals(world: World) -> Iterator[dict[str, Any]]:
    """The columns of the last rows of a quiet run, one for each database."""
    desk = world[world.names[0]].app
    assert isinstance(desk, Desk), "replicas have clients"
    for name, position, digest in desk.load.databases.finals():
        yield {"members": name, "position": position, "digest": digest, "sub": reds(world, name)}


def reds(world: World, name: ProcId) -> int:
    """How many bundles a replica has that are not green, also its own that were not delivered to it yet."""
    replica = replica_of(world, name)
    mine = replica.red_cut.get(name, 0)
    marked = sum(cut - replica.green_cut.get(server, 0) for server, cut in replica.red_cut.items())
    return marked + sum(index > mine for index in replica.ongoing)


def replica_of(world: World, name: ProcId) -> Replica:
    """What a process knows as a replica; it must be up."""
    router = world[name].router
    core = router.layers[0].core if router is not None else None
    while isinstance(core, Wrapped):
        core = core.core
    if not isinstance(core, Engine) or isinstance(core.phase, Boot):
        raise TypeError(f"{name} is no replica, or is down")
    return core.phase.server.replica


def submission_of(request: Request) -> Submission:
    """What a request asks of a replica."""
    found = [_ACTION.fullmatch(part) for part in request.text.split(BETWEEN)]
    actions = tuple(Action(each[1], int(each[2]), each[3].encode()) for each in found if each)
    if len(actions) < len(found):
        raise ValueError(f"{request.text!r} asks nothing of a replica; write it like 's1/4 append l1 7'")
    return Submission(actions[0].session, actions, request.level or Level.LOCAL)


_ACTION = re.compile(r"([\w-]+)/(\d{1,15}) (.*)")
