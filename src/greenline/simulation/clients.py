"""Clients: each asks one server at a time, and asks again elsewhere until it is told; each request counts once.

A client numbers its actions and keeps what is unanswered. When its server dies, refuses, says that it will not learn
the outcome, or takes too long, and when its plan names another server, it goes elsewhere and asks for all of that
again, by number and with the same numbers and contents, while the first copies may still be on their way; then for
what is new. Some stay away for a while first. One whose session is over takes a new name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from typing import Any

import msgspec

from greenline.kernel.actions import DECIDED, Action, Outcome, OutcomeOf, Verdict
from greenline.kernel.identities import ProcId
from greenline.replication.port import Accepted, Answer, Level, Reads, Refused, Replied, Unanswered
from greenline.simulation.desk import Desk, Errand, Question, Submission, read_before
from greenline.simulation.wishes import OUTCOME, Lookup, Revision, Update
from greenline.simulation.world import World

PATIENCE_S = (0.3, 1.5)
"""How long an impatient client waits for an answer before it asks elsewhere."""
HEALED_PATIENCE_S = 1.5
"""After healing everybody is impatient: what nobody answers is asked until somebody does."""
MOST_HURRIED = 8
"""Who asks for more than this at a time does not ask for all of it again out of impatience."""
TACIT = 0.3
"""How many do not say what they have received, until they are told that too much is kept for them."""
BACK_OFF_S = (0.02, 0.1)
LONGEST_BACK_OFF = 8
"""A client that is refused time and again waits so many times longer, at most."""
AWAY = 0.15
AWAY_S = (0.3, 1.2)
"""How many of those who lose their server give up for a while, and for how long."""
NEXT_VALUE = 10**9
"""What a revision writes when it is tried again: every value is written once."""


@dataclass
class Pending:
    """An action that is asked for until it is answered."""

    action: Action
    text: str
    level: Level
    together: int
    """Those of one submission have the same."""
    revision: Revision | None = None


Turn = tuple[Update | Lookup | Revision, int]
"""A wish, and how much may be unanswered when it is its turn."""


class Client:
    def __init__(self, world: World, name: str, chance: Random) -> None:
        self.name = name
        self.session = name
        self.seen = 0
        """The greatest position that it was told."""
        self.desk: Desk | None = None
        self.waiting: deque[Turn] = deque()
        """What it will ask for."""
        self._world = world
        self._chance = chance
        self._patience: float | None = chance.choice((None, None, chance.uniform(*PATIENCE_S)))
        self._is_tacit = chance.random() < TACIT
        self._sessions = 1
        self._actions: dict[int, Pending] = {}
        """Unanswered, by number."""
        self._relaxed: dict[int, Pending] = {}
        self._questions: dict[str, tuple[Question, Revision | None]] = {}
        """Unanswered, by name; those of a revision with it."""
        self._answered: dict[int, Pending] = {}
        self._received = 0
        """All up to this number are answered."""
        self._last = self._last_relaxed = self._last_question = self._submissions = 0
        self._tries = 0
        """Without success, in a row."""
        self._is_due = False
        """It will ask all again, soon."""
        self._is_watching = False
        self._progress = 0
        world.at_healing.append(self._watch)

    @property
    def is_waiting(self) -> bool:
        return bool(self.waiting or self._outstanding)

    @property
    def _outstanding(self) -> int:
        groups = {pending.together for pending in self._actions.values()}
        return len(groups) + len(self._relaxed) + len(self._questions)

    # What it wants.

    def want(self, wish: Update | Lookup | Revision, window: int, server: Desk) -> None:
        """Its plan names a server: it goes there, if there is somebody to be asked."""
        self.waiting.append((wish, window))
        if window > MOST_HURRIED:
            self._patience, self._is_tacit = None, True
        if server.is_open and self.desk is not server and not self._is_due:
            self._connect(server)
        elif self.desk is None or not self.desk.is_open:
            self._ask_again_later(0.0)
        self._go_on()

    def _go_on(self) -> None:
        """Ask what waits, as far as the window allows."""
        while self.waiting and not self._is_due and self.desk is not None and self._outstanding < self.waiting[0][1]:
            if not self.desk.is_open:
                self._ask_again_later(self._back_off())
                return
            self._begin(self.waiting.popleft()[0])

    def _begin(self, wish: Update | Lookup | Revision) -> None:
        self._submissions += 1
        match wish:
            case Update(_, bodies, level, is_relaxed):
                self._send([self._numbered(body, body, level, is_relaxed) for body in bodies])
            case Lookup(_, body, reads, is_patient):
                if body == OUTCOME:
                    self._question(self._own_request(), reads, is_patient)
                else:
                    self._question(body.encode(), reads, is_patient)
            case Revision(_, register, _, reads):
                self._question(f"read {register}".encode(), reads, True, wish)

    def _own_request(self) -> OutcomeOf:
        """The oldest that it waits for, or else the last that it was told of."""
        return OutcomeOf(self.session, min(self._actions, default=max(1, self._last)))

    def _numbered(self, body: str, text: str, level: Level, is_relaxed: bool = False) -> Pending:
        if is_relaxed:
            self._last_relaxed += 1
            action = Action(self.session, self._last_relaxed, body.encode(), is_relaxed=True)
        else:
            self._last += 1
            action = Action(self.session, self._last, body.encode())
        pending = Pending(action, text, level, self._submissions)
        (self._relaxed if is_relaxed else self._actions)[action.number] = pending
        return pending

    def _question(
        self, request: bytes | OutcomeOf, reads: Reads, is_patient: bool, revision: Revision | None = None
    ) -> None:
        self._last_question += 1
        question = Question(f"{self.session}?{self._last_question}", request, reads, 0, is_patient)
        self._questions[question.name] = question, revision
        self._put(question)

    # Asking, and asking again.

    def _send(self, together: list[Pending]) -> None:
        received = 0 if self._is_tacit or together[0].action.is_relaxed else self._received
        actions = tuple(msgspec.structs.replace(each.action, received=received) for each in together)
        self._put(Submission(actions, tuple(each.text for each in together), together[0].level))

    def _put(self, errand: Submission | Question) -> None:
        if self.desk is not None and self.desk.is_open:
            if isinstance(errand, Submission):
                self.desk.submit(errand, self)
            else:
                self.desk.ask(replace(errand, after=self.seen if errand.reads is Reads.SESSION else 0), self)
        self._watch()

    def _connect(self, desk: Desk) -> None:
        """A server to ask from now on, and first for all that is unanswered."""
        self.desk = desk
        unanswered = [kept[number] for kept in (self._actions, self._relaxed) for number in sorted(kept)]
        questions = [question for question, _ in self._questions.values()]
        for _, together in groupby(unanswered, key=lambda each: each.together):
            self._send(list(together))
        for question in questions:
            self._put(question)

    def _ask_again_later(self, delay: float, elsewhere: bool = False) -> None:
        if not self._is_due:
            self._is_due = True
            self._world.agenda.after(delay, self._ask_again, elsewhere)

    def _ask_again(self, elsewhere: bool) -> None:
        self._is_due = False
        if not self.is_waiting:
            return
        if elsewhere or self.desk is None or not self.desk.is_open:
            desk = self._another()
            if desk is None:
                self._ask_again_later(self._back_off())
                return
        else:
            desk = self.desk
        self._connect(desk)
        self._go_on()

    def _another(self) -> Desk | None:
        """Some server that would answer; another than the present one, if there is any."""
        here = self.desk.process.name if self.desk is not None else None
        apps = [self._world[name].app for name in self._world.names if self._world[name].is_running]
        desks = [app for app in apps if isinstance(app, Desk)]
        others = [desk for desk in desks if desk.process.name != here]
        return self._chance.choice(others or desks) if desks else None

    def _back_off(self) -> float:
        self._tries += 1
        return min(self._tries, LONGEST_BACK_OFF) * self._chance.uniform(*BACK_OFF_S)

    def _watch(self) -> None:
        """Look again in a while whether something has come."""
        patience = HEALED_PATIENCE_S if self._world.is_healed else self._patience
        if patience is not None and not self._is_watching and self.is_waiting:
            self._is_watching = True
            self._world.agenda.after(patience, self._look, self._progress)

    def _look(self, progress: int) -> None:
        self._is_watching = False
        if self.is_waiting and progress == self._progress:
            self._world.counts["clients that lost their patience"] += 1
            self._ask_again_later(0.0, elsewhere=True)
        self._watch()

    def lose(self, name: ProcId) -> None:
        """A server has died."""
        if self.desk is None or self.desk.process.name != name or not self.is_waiting:
            return
        if self._chance.random() < AWAY and not self._world.is_healed:
            self._world.counts["clients that stayed away for a while"] += 1
            self._ask_again_later(self._chance.uniform(*AWAY_S), elsewhere=True)
        else:
            self._ask_again_later(self._back_off(), elsewhere=self._chance.random() < 0.7)

    # What it is told.

    def hear(self, desk: Desk, errand: Errand, upcall: Any) -> None:
        match errand, upcall:
            case Submission(actions), Accepted() if actions[0].is_relaxed:
                for action in actions:
                    if action.session == self.session:
                        self._advance(self._relaxed.pop(action.number, None) is not None)
            case Submission(actions), Replied(_, position, _, outcomes):
                for action, outcome in zip(actions, outcomes, strict=True):
                    if action.session == self.session:
                        self._decide(action, outcome, position)
            case Question(name), Answer(_, rows, _, position):
                self.seen = max(self.seen, position)
                self._answer(name, rows.decode())
            case Question(name, is_patient=False), Refused():
                self._advance(self._questions.pop(name, None) is not None)
            case _, Refused() | Unanswered() if desk is self.desk and self._is_unanswered(errand):
                self._ask_again_later(self._back_off(), elsewhere=self._chance.random() < 0.5)
        self._world.agenda.after(0.0, self._go_on)

    def _is_unanswered(self, errand: Errand) -> bool:
        match errand:
            case Submission(actions):
                kept = self._relaxed if actions[0].is_relaxed else self._actions
                return any(each.session == self.session and each.number in kept for each in actions)
            case Question(name):
                return name in self._questions
            case _:
                return False

    def _advance(self, is_news: bool = True) -> None:
        if is_news:
            self._progress += 1
            self._tries = 0

    def _decide(self, action: Action, outcome: Outcome, position: int) -> None:
        match outcome.verdict:
            case Verdict.EXPIRED:
                self._take_a_new_name(position)
            case _ if action.is_relaxed:
                self._relaxed.pop(action.number, None)
            case Verdict.EARLY:
                self._go_back(action.number)
            case Verdict.CROWDED:
                self._is_tacit = False
                if action.number in self._actions:
                    self._ask_again_later(self._back_off())
            case verdict:
                if verdict in DECIDED:
                    self.seen = max(self.seen, outcome.position)
                if (pending := self._actions.pop(action.number, None)) is not None:
                    self._answered[action.number] = pending
                    self._advance()
                    while self._received + 1 in self._answered:
                        self._received += 1
                    if verdict is Verdict.CONFLICT and pending.revision is not None:
                        self._revise(pending.revision)

    def _go_back(self, number: int) -> None:
        """One before it is not decided. If we were told that it is, that was lost with those who knew: once more."""
        if number not in self._actions:
            return
        if (before := self._answered.pop(number - 1, None)) is not None and number - 1 not in self._actions:
            self._world.counts["answered requests that were asked again"] += 1
            self._actions[number - 1] = before
            self._received = min(self._received, number - 2)
        self._ask_again_later(self._back_off())

    def _answer(self, name: str, rows: str) -> None:
        question = self._questions.pop(name, None)
        if question is None:
            return
        self._advance()
        if (revision := question[1]) is not None:
            self._submissions += 1
            body = f"write {revision.register} {revision.value}"
            pending = self._numbered(body, f"{body} if {rows}", revision.level)
            reads = (read_before(f"read {revision.register}", rows),)
            pending.action = msgspec.structs.replace(pending.action, reads=reads)
            pending.revision = revision
            self._world.agenda.after(0.0, self._send_at_last, pending)

    def _send_at_last(self, pending: Pending) -> None:
        if not self._is_due and self._actions.get(pending.action.number) is pending:
            self._send([pending])

    def _revise(self, revision: Revision) -> None:
        if revision.times > 1:
            self.waiting.appendleft((replace(revision, value=revision.value + NEXT_VALUE, times=revision.times - 1), 1))

    def _take_a_new_name(self, position: int) -> None:
        """What was unanswered may be decided or not: nobody knows any more, so it is not asked again."""
        self._world.counts["requests given up with their session"] += len(self._actions) + len(self._relaxed)
        self._sessions += 1
        self.session = f"{self.name}.{self._sessions}@{position}"
        self._actions.clear()
        self._relaxed.clear()
        self._answered.clear()
        self._received = self._last = self._last_relaxed = self._last_question = 0
        self._advance()

    def complaints(self) -> Iterator[str]:
        """What it still waits for, long after healing."""
        if self.is_waiting:
            names = [*map(str, (each.action for each in (*self._actions.values(), *self._relaxed.values())))]
            names += list(self._questions) or ([] if names else ["what it could not ask yet"])
            yield f"{self.name} still waits for {' '.join(names[:4])}"
