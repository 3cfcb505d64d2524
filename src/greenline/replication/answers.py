"""Answers: what comes back from the database, to whoever has asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenline.kernel.database import (
    Applied,
    Chunk,
    Committed,
    Lacks,
    Open,
    Opened,
    Refused,
    Rows,
    SnapshotHeld,
    Staged,
)
from greenline.kernel.effects import Effect, Halt
from greenline.replication.applying import ask, on_opened
from greenline.replication.giving import on_chunk, on_held
from greenline.replication.joining import Transfer, compare, on_lacks, on_staged
from greenline.replication.nonprim import NonPrim
from greenline.replication.queries import on_rows, refuse
from greenline.replication.requests import reply

if TYPE_CHECKING:
    from greenline.replication.core import Phase


def on_answer(phase: Phase, call: int, answer: object, out: list[Effect]) -> None:
    server = phase.server
    replica, applying, requests = server.replica, server.applying, server.requests
    match answer:
        case Applied(position):
            applying.applied = position
            reply(replica, requests, replica.at(position), answer, out)
        case Committed(position, durable):
            applying.committed = position
            applying.durable = max(applying.durable, durable)
            replica.is_line_raised = True
        case Rows():
            on_rows(replica, server.queries, call, answer, requests.where, out)
        case Opened():
            if call == applying.opening:
                on_opened(replica, applying, answer, out)
        case SnapshotHeld():
            on_held(server.giving, answer)
        case Chunk():
            on_chunk(replica, server.giving, server.outbox, call, answer)
        case Lacks() | Staged():
            _on_transfer(phase, call, answer, out)
        case Refused(reason) if call in server.queries.asked:
            refuse(server.queries, call, reason, out)
        case Refused() if call == applying.opening and applying.is_restoring:
            _compare_again(phase, out)
        case Refused(reason):
            out.append(Halt(f"the database refused: {reason}"))
        case _:
            raise AssertionError(f"nobody asked the database for {answer!r}")


def _compare_again(phase: Phase, out: list[Effect]) -> None:
    """A chunk that the database had is gone, as it was still at work. It is not any more: what does it lack now?"""
    applying = phase.server.applying
    applying.is_restoring = False
    transfer = phase.way if isinstance(phase, NonPrim) else None
    if isinstance(transfer, Transfer) and transfer.is_restoring:
        transfer.is_restoring = False
        compare(transfer, applying, out)
    else:
        applying.opening = ask(applying, Open(), out)  # nobody needs the snapshot any more


def _on_transfer(phase: Phase, call: int, answer: Lacks | Staged, out: list[Effect]) -> None:
    """Of a transfer that is over, nothing is needed any more."""
    server = phase.server
    transfer = phase.way if isinstance(phase, NonPrim) else None
    if not isinstance(transfer, Transfer) or call not in transfer.calls:
        return
    number = transfer.calls.pop(call)
    if isinstance(answer, Lacks):
        on_lacks(server.replica, transfer, server.applying, server.outbox, answer, out)
    elif number is not None:
        on_staged(server.replica, transfer, server.applying, server.outbox, number, out)
