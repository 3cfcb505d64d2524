"""Applying: the green order into the database, each bundle once, and committed only after the log has it.

The database says where it stands when a life begins; what the log has beyond is applied again. A bundle is applied as
soon as it is green, so that its outcome is known; the commit that contains it waits for its green mark to be durable
(log before data): a database can be behind its log, never ahead, but for one that was just restored from a snapshot:
it brings the beginning of its log with it (`basis`).
"""

from __future__ import annotations

from dataclasses import dataclass

from greenline.kernel.database import DATABASE, Apply, Ask, Commit, Open, Opened
from greenline.kernel.effects import Call, Effect, Halt
from greenline.replication.messages import Basis, decode_basis
from greenline.replication.recovery import ANEW
from greenline.replication.replica import Replica


@dataclass(slots=True)
class Applying:
    calls: int = 0
    opening: int = 0
    """The call that was asked where the database stands, or to restore it."""
    is_restoring: bool = False
    """That call is to restore it."""
    is_open: bool = False
    logged: int = 0
    """How long the order was in the log when this life began."""
    asked: int = 0
    """Positions up to this one were given to the database."""
    applied: int = 0
    committing: int = 0
    """Up to which the last commit was asked for."""
    committed: int = 0
    durable: int = 0
    """What the database would still have after a loss of power."""
    basis: Basis | None = None
    """It was restored to a position that our order has not reached."""


def ask(applying: Applying, request: Ask, out: list[Effect], gate: int | None = None) -> int:
    applying.calls += 1
    out.append(Call(applying.calls, DATABASE, request, gate=gate))
    return applying.calls


def open_database(applying: Applying, logged: int, out: list[Effect]) -> None:
    """Ask where it stands; the log of this life began with an order of this length."""
    applying.logged = logged
    applying.opening = ask(applying, Open(), out)


def on_opened(replica: Replica, applying: Applying, opened: Opened, out: list[Effect]) -> None:
    position = opened.position
    applying.is_restoring = False
    basis = decode_basis(opened.basis) if opened.basis else None
    if position > applying.logged and basis is not None and basis.position == position:
        applying.basis = basis
    elif position > applying.logged:
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
        go_on_from(applying, position, opened.durable)


def go_on_from(applying: Applying, position: int, durable: int) -> None:
    applying.is_open = True
    applying.asked = applying.applied = applying.committing = applying.committed = position
    applying.durable = durable


def has_reached_basis(replica: Replica, applying: Applying) -> bool:
    """Our order has come to where the database was restored, by another way: it goes on from there."""
    basis = applying.basis
    if basis is None or replica.green < basis.position or replica.is_new:
        return False
    applying.basis = None
    go_on_from(applying, basis.position, basis.position)
    return True


def apply_greens(replica: Replica, applying: Applying, out: list[Effect]) -> None:
    """Give the database what is green and it has not; commit what is durable and it has."""
    if not applying.is_open:
        return
    last = min(replica.green, applying.applied + replica.settings.unapplied)
    for position in range(applying.asked + 1, last + 1):
        ask(applying, _apply(replica, position), out)
        applying.asked = position
    may_commit = min(replica.durable_green, applying.applied)
    if may_commit > applying.committing:
        applying.committing = may_commit
        ask(applying, Commit(may_commit), out, gate=replica.durable_ticket or None)


def _apply(replica: Replica, position: int) -> Apply:
    """What the database is to do at a position: what its clients asked for, or what a change of the cluster means."""
    if position in replica.changes:
        return Apply(position, (), replica.changes[position].system)
    if position in replica.voided:
        return Apply(position, ())
    return Apply(position, replica.bodies[replica.at(position)].actions)
