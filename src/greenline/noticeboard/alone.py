"""Alone: nobody was heard lately. We go on writing; what we write waits on our own board."""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.ports import Multicast
from greenline.noticeboard.board import Board, answer, on_durable, on_notice, post
from greenline.noticeboard.company import CALM_HELLO_S, Company, Timer, hello
from greenline.noticeboard.messages import Notice, Summary
from greenline.noticeboard.moves import ToExchanging


@dataclass(slots=True)
class Alone:
    board: Board

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToExchanging | None:
        match event:
            case Received(_, sender) if sender == self.board.me:
                out.append(Ignored("from somebody who uses my name"))
            case Received(Summary() as summary, sender):
                company = Company()
                company.hears(sender, summary, now)
                answer(self.board, sender, summary, out)
                return ToExchanging(company)
            case Received(Notice() as notice):
                on_notice(self.board, notice, out)  # its sender's summary will follow, and with it company
            case TimerFired(Timer.HELLO):
                hello(self.board, CALM_HELLO_S, out)
            case Downcall(Multicast() as call):
                post(self.board, call, out)
            case Durable():
                on_durable(self.board, out)
            case _:
                raise Impossible(self, event)
        return None


def enter(board: Board, out: list[Effect]) -> Alone:
    hello(board, CALM_HELLO_S, out)
    return Alone(board)
