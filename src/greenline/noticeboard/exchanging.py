"""Exchanging: somebody in our company may lack what another holds. Summaries go round until nobody does."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.ports import Multicast
from greenline.noticeboard.board import Board, answer, on_durable, on_notice, post
from greenline.noticeboard.company import HELLO_S, Company, Timer, hello
from greenline.noticeboard.messages import Notice, Summary
from greenline.noticeboard.moves import ToAlone, ToExchanging, ToLevel


@dataclass(slots=True)
class Exchanging:
    board: Board
    company: Company

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToAlone | ToLevel | None:
        match event:
            case Received(_, sender) if sender == self.board.me:
                out.append(Ignored("from somebody who uses my name"))
            case Received(Summary() as summary, sender):
                self.company.hears(sender, summary, now)
                answer(self.board, sender, summary, out)
                if self.company.is_level_with(self.board.summary()):
                    return ToLevel(self.company)
            case Received(Notice() as notice):
                on_notice(self.board, notice, out)
            case TimerFired(Timer.HELLO):
                self.company = self.company.without_the_silent(now)
                if not self.company.heard_at:
                    return ToAlone()
                hello(self.board, HELLO_S, out)
            case Downcall(Multicast() as call):
                post(self.board, call, out)
            case Durable():
                on_durable(self.board, out)
                if self.company.is_level_with(self.board.summary()):
                    return ToLevel(self.company)
            case _:
                raise Impossible(self, event)
        return None


def enter(board: Board, move: ToExchanging, out: list[Effect]) -> Exchanging:
    hello(board, HELLO_S, out)
    return Exchanging(board, move.company)
