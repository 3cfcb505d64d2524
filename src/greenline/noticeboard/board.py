"""The board: the notices that we hold, and what may be done with them in every phase.

A notice is read (delivered) only after it is durable here: whoever has read it will be asked for it, and
will read it again after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from greenline.kernel.effects import Append, Barrier, Broadcast, Effect, Ignored, Send, Upcall
from greenline.kernel.events import Durable, Start
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, Sent
from greenline.noticeboard.messages import Chapter, Notice, Summary

BATCH = 16
"""How many notices one summary is answered with."""
UNFORCED = 32
"""How many notices may wait for the disk before the port is busy."""


@dataclass(slots=True)
class Board:
    me: ProcId
    life: int
    chapters: dict[Chapter, list[Notice]] = field(default_factory=dict)
    tickets: int = 0
    durable: int = 0
    is_busy: bool = False

    def count(self, chapter: Chapter) -> int:
        return len(self.chapters.get(chapter, ()))

    def pin(self, notice: Notice) -> None:
        assert notice.number == self.count(notice.chapter) + 1, "pinned over a gap"
        self.chapters.setdefault(notice.chapter, []).append(notice)

    def summary(self) -> Summary:
        return Summary(tuple(sorted((*chapter, len(notices)) for chapter, notices in self.chapters.items())))


def reopen(start: Start, out: list[Effect]) -> Board:
    """The board as the disk had it; this life reads it from the beginning, as its reader remembers nothing."""
    board = Board(start.me, start.incarnation)
    for notice in start.records:
        board.pin(notice)
        read(notice, None, out)
    return board


def post(board: Board, call: Multicast, out: list[Effect]) -> None:
    """Write a notice of our own: nobody else hears of it before it is durable here."""
    if board.tickets - board.durable >= UNFORCED:
        board.is_busy = True
        out.append(Upcall(Busy(call.message)))
        return
    notice = Notice(board.me, board.life, call.message.number, call.service, call.payload)
    gate = keep(board, notice, out)
    out.append(Upcall(Sent(notice.message), gate=gate))
    out.append(Broadcast(notice, gate=gate))
    read(notice, gate, out)


def on_notice(board: Board, notice: Notice, out: list[Effect]) -> bool:
    """Take a notice that is the next of its chapter; True if the board has grown."""
    held = board.count(notice.chapter)
    if notice.number <= held:
        out.append(Ignored("already on the board"))
        return False
    if notice.number > held + 1:
        out.append(Ignored("a notice before it is missing"))  # our next summary asks for what lies between
        return False
    read(notice, keep(board, notice, out), out)
    return True


def on_durable(board: Board, event: Durable, out: list[Effect]) -> None:
    board.durable = event.ticket
    if board.is_busy:
        board.is_busy = False
        out.append(Upcall(Ready()))


def answer(board: Board, reader: ProcId, summary: Summary, out: list[Effect]) -> None:
    """Send what the reader lacks, in order, a batch at a time: its next summary asks for the rest."""
    held = {Chapter(author, life): count for author, life, count in summary.held}
    lacking = (n for chapter in sorted(board.chapters) for n in board.chapters[chapter][held.get(chapter, 0) :])
    for notice, _ in zip(lacking, range(BATCH), strict=False):
        out.append(Send(reader, notice))


def keep(board: Board, notice: Notice, out: list[Effect]) -> int:
    """Pin a notice and force it; returns the gate for whatever depends on it."""
    board.pin(notice)
    board.tickets += 1
    out.append(Append(notice))
    out.append(Barrier(board.tickets))
    return board.tickets


def read(notice: Notice, gate: int | None, out: list[Effect]) -> None:
    out.append(Upcall(Deliver(notice.message, notice.service, notice.text), gate=gate))
