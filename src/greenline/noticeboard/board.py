"""The board: the notices that we hold, and what may be done with them in every phase.

A notice counts from when it is durable here. Only then is it read (delivered), told in a summary or given to
others: whoever has heard of it from us may ask for it again after we crashed, and whoever has read it will read it
again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from greenline.kernel.effects import Append, Barrier, Broadcast, Effect, Ignored, Send, Upcall
from greenline.kernel.events import Start
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
    durable: dict[Chapter, int] = field(default_factory=dict)
    """How many notices of each chapter are on disk."""
    forcing: deque[Chapter] = field(default_factory=deque)
    """Where the notices belong that are not, in the order of their barriers."""
    tickets: int = 0
    is_busy: bool = False

    def count(self, chapter: Chapter) -> int:
        return len(self.chapters.get(chapter, ()))

    def pin(self, notice: Notice) -> None:
        assert notice.number == self.count(notice.chapter) + 1, "pinned over a gap"
        self.chapters.setdefault(notice.chapter, []).append(notice)

    def forced(self, chapter: Chapter) -> None:
        self.durable[chapter] = self.durable.get(chapter, 0) + 1

    def summary(self) -> Summary:
        return Summary(tuple(sorted((*chapter, count) for chapter, count in self.durable.items())))


def reopen(start: Start, out: list[Effect]) -> Board:
    """The board as the disk had it; this life reads it from the beginning, as its reader remembers nothing."""
    board = Board(start.me, start.incarnation)
    for notice in start.records:
        board.pin(notice)
        board.forced(notice.chapter)
        read(notice, None, out)
    return board


def post(board: Board, call: Multicast, out: list[Effect]) -> None:
    """Write a notice of our own: nobody else hears of it before it is durable here."""
    if len(board.forcing) >= UNFORCED:
        board.is_busy = True
        out.append(Upcall(Busy(call.message)))
        return
    notice = Notice(board.me, board.life, call.message.number, call.service, call.payload)
    gate = keep(board, notice, out)
    out.append(Upcall(Sent(notice.message), gate=gate))
    out.append(Broadcast(notice, gate=gate))
    read(notice, gate, out)


def on_notice(board: Board, notice: Notice, out: list[Effect]) -> None:
    """Take a notice that is the next of its chapter."""
    held = board.count(notice.chapter)
    if notice.author == board.me and notice.life >= board.life:
        out.append(Ignored("said to be mine, but I have not written it"))
    elif notice.number <= held:
        out.append(Ignored("already on the board"))
    elif notice.number > held + 1:
        out.append(Ignored("a notice before it is missing"))  # our next summary asks for what lies between
    else:
        read(notice, keep(board, notice, out), out)


def on_durable(board: Board, out: list[Effect]) -> None:
    """The oldest notice that was being forced is on disk, and has been read."""
    board.forced(board.forcing.popleft())
    if board.is_busy:
        board.is_busy = False
        out.append(Upcall(Ready()))


def answer(board: Board, reader: ProcId, summary: Summary, out: list[Effect]) -> None:
    """Send what the reader lacks, in order, a batch at a time: its next summary asks for the rest."""
    held = {Chapter(author, life): count for author, life, count in summary.held}
    lacking = (
        notice
        for chapter in sorted(board.durable)
        for notice in board.chapters[chapter][held.get(chapter, 0) : board.durable[chapter]]
    )
    out.extend(Send(reader, notice) for notice in islice(lacking, BATCH))


def keep(board: Board, notice: Notice, out: list[Effect]) -> int:
    """Pin a notice and force it; returns the gate for whatever depends on it."""
    board.pin(notice)
    board.forcing.append(notice.chapter)
    board.tickets += 1
    out.append(Append(notice))
    out.append(Barrier(board.tickets))
    return board.tickets


def read(notice: Notice, gate: int | None, out: list[Effect]) -> None:
    out.append(Upcall(Deliver(notice.message, notice.service, notice.text), gate=gate))
