"""The noticeboard's core: moves from phase to phase.

         summary heard                all level
Alone ------------------> Exchanging -----------> Level
  ^                        |   ^                  |  |
  '--- everybody silent ---'   '- something new --'  |
  '------------------- everybody silent -------------'
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect
from greenline.kernel.events import Event, Start
from greenline.noticeboard import alone, exchanging, invariants, level
from greenline.noticeboard.alone import Alone
from greenline.noticeboard.board import reopen
from greenline.noticeboard.exchanging import Exchanging
from greenline.noticeboard.level import Level
from greenline.noticeboard.moves import ToAlone, ToExchanging, ToLevel


@dataclass(slots=True)
class Unborn:
    """Before Start: there is no board yet."""


class Noticeboard:
    def __init__(self) -> None:
        self.phase: Unborn | Alone | Exchanging | Level = Unborn()

    def handle(self, now: float, event: Event) -> list[Effect]:
        """Same events, same effects, always."""
        out: list[Effect] = []
        phase = self.phase
        if isinstance(phase, Unborn):
            if not isinstance(event, Start):
                raise Impossible(phase, event, "the first event of a life is its start")
            self.phase = phase = alone.enter(reopen(event, out), out)
        else:
            match phase.handle(now, event, out):
                case ToAlone():
                    self.phase = phase = alone.enter(phase.board, out)
                case ToExchanging() as move:
                    self.phase = phase = exchanging.enter(phase.board, move, out)
                case ToLevel() as move:
                    self.phase = phase = level.enter(phase.board, move, out)
                case None:
                    pass
        invariants.check(phase)
        return out
