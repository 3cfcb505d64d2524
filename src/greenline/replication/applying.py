"""Applying: the green order into the database, each bundle once, and committed only after the log has it.

The database says where it stands when a life begins; what the log has beyond is applied again. A bundle is applied as
soon as it is green, so that its outcome is known; the commit that contains it waits for its green mark to be durable
(log before data): a database can be behind its log, never ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.database import DATABASE, Answer, Applied, Apply, Commit, Committed, Open, Opened, Refused
from greenline.kernel.effects import Call, Effect, Halt
from greenline.replication.recovery import ANEW
from greenline.replication.replica import Replica
from greenline.replication.requests import Requests, reply


@dataclass(slots=True)
class Applying:
    calls: int = 0
    is_open: bool = False
    logged: int = 0
    """How long the order was in the log when this life began."""
    asked: int = 0
    """Positions up to this one were given to the database."""
    applied: int = 0
    committing: int = 0
    """Up to which the last commit was asked for."""
    durable: int = 0
    """What the database would still have after a loss of power."""


def open_database(applying: Applying, logged: int, out: list[Effect]) -> None:
    """Ask where it stands; the log of this life began with an order of this length."""
    applying.logged = logged
    _ask(applying, Open(), out)


def on_answer(replica: Replica, applying: Applying, requests: Requests, answer: Answer, out: list[Effect]) -> None:
    match answer:
        case Opened(position, _, durable):
            on_opened(replica, applying, position, durable, out)
        case Applied(position):
            applying.applied = position
            reply(replica, requests, replica.at(position), answer, out)
        case Committed(_, durable):
            applying.durable = max(applying.durable, durable)
            replica.is_line_raised = True
        case Refused(reason):
            out.append(Halt(f"the database refused: {reason}"))
        case _:
            raise AssertionError(f"nobody asked the database for {answer!r}")


def on_opened(replica: Replica, applying: Applying, position: int, durable: int, out: list[Effect]) -> None:
    if position > applying.logged:
        out.append(
            Halt(
                f"the database stands at position {position}, its log ends at {applying.logged}: one of them is not "
                f"this replica's, or was restored without the other; bring back the one that belongs to it, or {ANEW}"
            )
        )
    elif position < replica.low:
        out.append(
            Halt(
                f"the database stands at position {position}, its log begins after {replica.low}: it was restored from "
                f"a backup, or replaced; bring back the one that belongs to it, or {ANEW}"
            )
        )
    else:
        applying.is_open = True
        applying.asked = applying.applied = applying.committing = position
        applying.durable = durable


def apply_greens(replica: Replica, applying: Applying, out: list[Effect]) -> None:
    """Give the database what is green and it has not; commit what is durable and it has."""
    if not applying.is_open:
        return
    last = min(replica.green, applying.applied + replica.settings.unapplied)
    for position in range(applying.asked + 1, last + 1):
        _ask(applying, Apply(position, replica.bodies[replica.at(position)].actions), out)
        applying.asked = position
    may_commit = min(replica.durable_green, applying.applied)
    if may_commit > applying.committing:
        applying.committing = may_commit
        _ask(applying, Commit(may_commit), out, gate=replica.durable_ticket or None)


def _ask(applying: Applying, request: Open | Apply | Commit, out: list[Effect], gate: int | None = None) -> None:
    applying.calls += 1
    out.append(Call(applying.calls, DATABASE, request, gate=gate))
