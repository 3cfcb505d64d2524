"""The company: whom we heard lately, and what they said they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from greenline.kernel.effects import Broadcast, Effect, SetTimer
from greenline.kernel.identities import ProcId
from greenline.noticeboard.board import Board
from greenline.noticeboard.messages import Summary

HELLO_S = 0.050
"""How often we say what we hold while somebody may lack something."""
CALM_HELLO_S = 0.200
"""How often when nobody does, or nobody is there."""
SILENCE_S = 0.700
"""Who was not heard for so long has left: more than three calm hellos, so that one lost packet is no farewell."""


class Timer(StrEnum):
    HELLO = "hello"


@dataclass(slots=True)
class Company:
    heard_at: dict[ProcId, float] = field(default_factory=dict)
    summaries: dict[ProcId, Summary] = field(default_factory=dict)

    def hears(self, peer: ProcId, summary: Summary, now: float) -> None:
        self.heard_at[peer] = now
        self.summaries[peer] = summary

    def without_the_silent(self, now: float) -> Company:
        present = [peer for peer, at in self.heard_at.items() if now - at <= SILENCE_S]
        return Company({peer: self.heard_at[peer] for peer in present}, {p: self.summaries[p] for p in present})

    def is_level_with(self, summary: Summary) -> bool:
        return all(theirs == summary for theirs in self.summaries.values())


def hello(board: Board, again_after: float, out: list[Effect]) -> None:
    """Say what we hold; whoever has more answers with what we lack."""
    out.append(Broadcast(board.summary()))
    out.append(SetTimer(Timer.HELLO, again_after))
