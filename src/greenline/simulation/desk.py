"""A desk: where clients and operators are served by one server, in one life of it. All that they see is written here.

Whoever asks is told what its errand came to; what the desk says after that (a late answer, a second one) is written all
the same, as somebody who judges may want to compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from greenline.database.witness import outcome_digest
from greenline.kernel import evidence
from greenline.kernel.actions import DECIDED, Action, Outcome, OutcomeOf, Read, Verdict, digest_of, pack
from greenline.kernel.identities import ProcId
from greenline.replication.port import (
    Accepted,
    Answer,
    Ask,
    Change,
    Force,
    Forced,
    Left,
    Level,
    Reads,
    Reconfigure,
    Refused,
    Replied,
    Submit,
    Unanswered,
)
from greenline.simulation.applications import Application
from greenline.simulation.process import Process
from greenline.simulation.requests import Request

if TYPE_CHECKING:
    from greenline.simulation.load import Load

RED = "red"
GREEN = "green"
DIRTY = "dirty"
RELAXED = "relaxed"


@dataclass(frozen=True)
class Submission:
    """Actions that are submitted together, and how each is told of."""

    actions: tuple[Action, ...]
    texts: tuple[str, ...]
    level: Level = Level.LOCAL

    @property
    def service(self) -> str:
        return RELAXED if self.actions[0].is_relaxed else self.level.value


@dataclass(frozen=True)
class Question:
    """A query, by the name that its client gave it."""

    name: str
    request: bytes | OutcomeOf
    reads: Reads
    after: int = 0
    is_patient: bool = True

    @property
    def text(self) -> str:
        request = self.request
        if isinstance(request, OutcomeOf):
            return f"outcome {request.session}{'~' if request.is_relaxed else '/'}{request.number}"
        return request.decode()


@dataclass(frozen=True)
class Override:
    """The majority is lost for good: an operator decides who survives."""

    survivors: tuple[ProcId, ...]
    dead: tuple[ProcId, ...]
    reason: str


Errand = Submission | Question | Change | Override


class Customer(Protocol):
    """Who asks, and is told."""

    def hear(self, desk: Desk, errand: Errand, upcall: Any, /) -> None: ...


class Desk(Application):
    def __init__(self, process: Process, load: Load) -> None:
        super().__init__(process)
        self.load = load
        self.errands: dict[int, tuple[Errand, Customer | None]] = {}
        self.unanswered: set[int] = set()
        self.accepted = 0
        self.outcomes: list[Outcome] = []
        """Of what is green, in the order in which they came."""
        self.refusals: list[str] = []
        self.found: dict[int, Answer] = {}
        """The answers to queries, by ticket."""

    @property
    def answers(self) -> list[str]:
        """The values of the outcomes."""
        return [outcome.value.decode() for outcome in self.outcomes]

    @property
    def is_open(self) -> bool:
        """Is this the present life of its server, and would that answer a call?"""
        return self.process.app is self and self.process.is_running

    def take(self, request: Request) -> bool:
        return self.load.take(self, request)

    # What it is asked.

    def submit(self, submission: Submission, customer: Customer | None = None) -> int:
        for action, text in zip(submission.actions, submission.texts, strict=True):
            self._note(evidence.CALL, str(action), submission.service, text)
        ticket = self._ticket(submission, customer)
        actions = submission.actions
        return self._put(ticket, Submit(ticket, pack(actions), len(actions), submission.level))

    def ask(self, question: Question, customer: Customer | None = None) -> int:
        after = {"position": question.after} if question.reads is Reads.SESSION else {}
        self._note(evidence.CALL, question.name, question.reads.value, question.text, **after)
        ticket = self._ticket(question, customer)
        return self._put(ticket, Ask(ticket, question.request, question.reads, question.after, question.is_patient))

    def reconfigure(self, change: Change, customer: Customer | None = None) -> int:
        ticket = self._ticket(change, customer)
        return self._put(ticket, Reconfigure(ticket, change))

    def force(self, override: Override) -> int:
        ticket = self._ticket(override, None)
        return self._put(ticket, Force(ticket, override.survivors, override.dead, override.reason))

    def _ticket(self, errand: Errand, customer: Customer | None) -> int:
        ticket = len(self.errands) + 1
        self.errands[ticket] = errand, customer
        self.unanswered.add(ticket)
        return ticket

    def _put(self, ticket: int, downcall: Any) -> int:
        process, router = self.process, self.process.router
        assert router is not None, "who is asked is up"
        process.perform(router.ask(process.clock(), downcall))
        return ticket

    # What it is told.

    def hear(self, upcall: Any) -> None:
        super().hear(upcall)
        match upcall:
            case Left():
                self.load.let_go(self.process.name)
            case Accepted() | Replied() | Answer() | Refused() | Unanswered() | Forced():
                errand, customer = self.errands[upcall.ticket]
                self._write(errand, upcall)
                if not isinstance(upcall, Accepted):
                    self.unanswered.discard(upcall.ticket)
                if customer is not None:
                    customer.hear(self, errand, upcall)

    def _write(self, errand: Errand, upcall: Any) -> None:
        match errand, upcall:
            case Submission(), Accepted():
                self.accepted += 1
                for action in errand.actions:
                    self._note(evidence.RETURN, str(action), errand.service, colour=RED)
            case Submission(), Replied(_, _, _, outcomes):
                for action, outcome in zip(errand.actions, outcomes, strict=True):
                    self._decided(action, errand.service, outcome)
            case Question(), Answer():
                self.found[upcall.ticket] = upcall
                self._answered(errand, upcall)
            case _, Accepted():
                self.accepted += 1
            case _, Replied(_, _, _, outcomes):
                self.outcomes.extend(outcomes)
            case _, Refused(_, reason) | Unanswered(_, reason):
                self.refusals.append(reason)
                self._refused(errand, reason)

    def _decided(self, action: Action, service: str, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.verdict not in DECIDED:
            self._note(evidence.REFUSED, str(action), service, outcome.verdict.value)
        elif not (action.is_relaxed and outcome.is_again):  # of those it is only known that they were decided
            detail = outcome.verdict.value if outcome.verdict is Verdict.CONFLICT else outcome.value.decode()
            place = {"position": outcome.position, "sub": outcome.sub}
            digest = outcome_digest(outcome)
            self._note(evidence.RETURN, str(action), service, detail, colour=GREEN, digest=digest, **place)

    def _answered(self, question: Question, answer: Answer) -> None:
        colour = DIRTY if question.reads is Reads.DIRTY and answer.reds else GREEN
        place = {"position": answer.position, "sub": answer.reds}
        rows, digest = answer.rows.decode(), None
        if (outcome := answer.outcome) is not None:
            rows, digest = f"{outcome.verdict} {outcome.value.decode()}".rstrip(), outcome_digest(outcome)
        self._note(evidence.RETURN, question.name, question.reads.value, rows, colour=colour, digest=digest, **place)

    def _refused(self, errand: Errand, reason: str) -> None:
        if isinstance(errand, Submission):
            for action in errand.actions:
                self._note(evidence.REFUSED, str(action), errand.service, reason)
        elif isinstance(errand, Question):
            self._note(evidence.REFUSED, errand.name, errand.reads.value, reason)

    def _note(self, kind: str, message: str, service: str, detail: str | None = None, **columns: Any) -> None:
        self.load.world.note(kind, detail, message=message, service=service, members=self.process.name, **columns)


def read_before(request: str, rows: str) -> Read:
    """What an interactive action presents as having been read."""
    return Read(request.encode(), digest_of(rows.encode()))
