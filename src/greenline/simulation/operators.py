"""Operators: they ask for changes of the cluster itself, of one server after another until somebody answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from greenline.kernel import evidence
from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.database import Activate
from greenline.kernel.identities import ProcId
from greenline.replication.port import Change, Refused, Replied, Unanswered
from greenline.replication.roster import in_words
from greenline.simulation.desk import Desk, Errand
from greenline.simulation.world import World

PATIENCE_S = 0.6
"""How long an operator waits for an answer before it asks another server."""
BACK_OFF_S = 0.1
MOST_FAILURES = 5
"""How often it asks again for what could not be done, as it may be possible later."""


class Operator:
    """One change, until it is answered or given up."""

    def __init__(
        self,
        world: World,
        chance: Random,
        change: Change,
        first: ProcId | None,
        never: ProcId | None,
        then: Callable[[Outcome], None] | None,
    ) -> None:
        self.change = change
        self.is_done = False
        self._world = world
        self._chance = chance
        self._never = never
        self._then = then
        self._failures = 0
        self._round = 0
        self._ask(first)

    def give_up(self) -> None:
        self.is_done = True

    def _ask(self, name: ProcId | None) -> None:
        """Of this server, if it would answer, or else of any."""
        if self.is_done:
            return
        self._round += 1
        running = [each for each in self._world.names if self._world[each].is_running and each != self._never]
        if running:
            asked = name if name in running else self._chance.choice(running)
            desk = self._world[asked].app
            assert isinstance(desk, Desk), "replicas have desks"
            self._world.note(evidence.FAULT, f"{asked} is asked: {in_words(self.change)}")
            desk.reconfigure(self.change, self)
        self._world.agenda.after(PATIENCE_S, self._ask_again, self._round)

    def _ask_again(self, round_: int) -> None:
        if round_ == self._round:
            self._ask(None)

    def hear(self, _: Desk, __: Errand, upcall: Any) -> None:
        if self.is_done:
            return
        match upcall:
            case Replied(_, _, _, (outcome,)):
                self._answered(outcome)
            case Refused() | Unanswered():
                self._world.agenda.after(BACK_OFF_S, self._ask_again, self._round)

    def _answered(self, outcome: Outcome) -> None:
        told = f"{in_words(self.change)}: {outcome.verdict} {outcome.value.decode()}".rstrip()
        self._world.note(evidence.FAULT, told)
        if outcome.verdict is Verdict.FAILED and isinstance(self.change, Activate) and self._failures < MOST_FAILURES:
            self._failures += 1
            self._world.agenda.after(BACK_OFF_S * 2, self._ask_again, self._round)
            return
        self.is_done = True
        if self._then is not None:
            self._then(outcome)


class Operators:
    """All of a world."""

    def __init__(self, world: World, seed: str) -> None:
        self._world = world
        self._chance = Random(f"{seed}/operators")
        self._all: list[Operator] = []
        world.operators = self

    def ask(
        self,
        change: Change,
        first: ProcId | None = None,
        never: ProcId | None = None,
        then: Callable[[Outcome], None] | None = None,
    ) -> None:
        self._all.append(Operator(self._world, self._chance, change, first, never, then))

    def give_up(self, change: Change) -> None:
        for operator in self._all:
            if operator.change == change:
                operator.give_up()

    def complaints(self) -> Iterator[str]:
        """What nobody has answered, long after healing."""
        for operator in self._all:
            if not operator.is_done:
                yield f"nobody has answered: {in_words(operator.change)}"
