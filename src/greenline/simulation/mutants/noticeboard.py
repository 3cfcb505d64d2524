"""Noticeboards with one mistake each."""

from __future__ import annotations

import msgspec

from greenline.kernel.effects import Broadcast, Effect, Send, Upcall
from greenline.kernel.ports import Deliver
from greenline.noticeboard.messages import Notice
from greenline.simulation.mutants.mutant import Mutant, Wrapped


class DeliversBeforeItsBarrier(Wrapped):
    def answers(self, effects: list[Effect]) -> list[Effect]:
        return [
            Upcall(effect.payload) if isinstance(effect, Upcall) and isinstance(effect.payload, Deliver) else effect
            for effect in effects
        ]


class ForgetsItsIncarnation(Wrapped):
    def answers(self, effects: list[Effect]) -> list[Effect]:
        return [
            msgspec.structs.replace(effect, message=msgspec.structs.replace(effect.message, life=1))
            if isinstance(effect, Send | Broadcast) and isinstance(effect.message, Notice)
            else effect
            for effect in effects
        ]


class IteratesOverASet(Wrapped):
    def answers(self, effects: list[Effect]) -> list[Effect]:
        answered = {effect for effect in effects if isinstance(effect, Send)}
        return [effect for effect in effects if not isinstance(effect, Send)] + list(answered)


MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "delivers-before-its-barrier",
            "reads a notice before it is on disk, so a crash makes it forget what it has read",
            DeliversBeforeItsBarrier,
        ),
        Mutant(
            "forgets-its-incarnation",
            "names every notice as if its author were in its first life, so a restart uses names again",
            ForgetsItsIncarnation,
        ),
        Mutant(
            "iterates-over-a-set",
            "answers in the order of a set of names, which is another one in every process",
            IteratesOverASet,
        ),
    )
}
