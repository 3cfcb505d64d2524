"""What holds between any two events, in every phase."""

from __future__ import annotations

from greenline.noticeboard.alone import Alone
from greenline.noticeboard.board import Board
from greenline.noticeboard.exchanging import Exchanging
from greenline.noticeboard.level import Level


def check(phase: Alone | Exchanging | Level) -> None:
    check_board(phase.board)
    if not isinstance(phase, Alone):
        assert phase.board.me not in phase.company.heard_at, "keeps company with itself"
        assert phase.company.heard_at, "keeps company with nobody"
    if isinstance(phase, Level):
        assert phase.company.is_level_with(phase.board.summary()), "calls level what differs"


def check_board(board: Board) -> None:
    held = sum(map(len, board.chapters.values()))
    assert held == sum(board.durable.values()) + len(board.forcing), "a notice is neither on disk nor on its way there"
    for chapter, notices in board.chapters.items():
        assert notices[-1].number == len(notices), f"a gap in {chapter}"
        assert chapter.author != board.me or chapter.life <= board.life, "holds a notice of a life to come"
