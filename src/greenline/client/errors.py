"""What can go wrong, for the asyncio client and for PEP 249 alike. The family:

Error
  InterfaceError            the client was misused: nothing was asked
  DatabaseError
    DataError               too large, out of range
    IntegrityError          a constraint was broken
    InternalError           the database is beside itself
    ProgrammingError        the statement is wrong
    NotSupportedError       the statement is right, and not for a replicated database
    OperationalError        neither is to blame
      Refused               a node did not take it, and says why: nothing came of it
        Unauthorised        the user, the password or the role
      Unreachable           no node could be reached
      TimedOut              the caller did not wait any longer: it may still happen, and can be asked for later
      OutcomeUnknown        it may have happened, or not, or may yet; nobody can tell
      ResultForgotten       it happened, and its result was too long to be kept
      SerializationFailure  what a transaction had read has changed: begin it anew
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenline.kernel.statements import Failure

if TYPE_CHECKING:
    from greenline.client.asked import Asked, Identity


class Warning(Exception):  # noqa: A001  PEP 249 calls it so
    """PEP 249 wants it; nothing here warns."""


class Error(Exception):
    """What went wrong: with SQLite's extended `code` and its name, `kind`, if SQLite said it; and the `position` of the
    order where it was decided, or 0 if it was not."""

    identity: Identity | None = None
    """Of the write that it is about, if it had one."""

    def __init__(self, message: str, *, code: int = 0, kind: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.kind = kind
        self.position = position


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class Refused(OperationalError):
    pass


class Unauthorised(Refused):
    pass


class Unreachable(OperationalError):
    pass


class TimedOut(OperationalError):
    """`handle` is what to ask for later (`Client.outcome`); None if nothing can come of it any more."""

    def __init__(self, message: str, handle: Asked | None = None) -> None:
        super().__init__(message)
        self.handle = handle


class OutcomeUnknown(OperationalError):
    """Whoever asks for the same under a new name may have it done twice."""

    def __init__(self, message: str, identity: Identity | None = None) -> None:
        super().__init__(message)
        self.identity = identity


class ResultForgotten(OperationalError):
    pass


class SerializationFailure(OperationalError):
    pass


_FAMILIES: dict[int, type[DatabaseError]] = {
    1: ProgrammingError,  # ERROR: syntax, no such table
    2: InternalError,
    12: InternalError,  # NOTFOUND
    18: DataError,  # TOOBIG
    19: IntegrityError,  # CONSTRAINT
    20: IntegrityError,  # MISMATCH
    21: ProgrammingError,  # MISUSE
    23: NotSupportedError,  # AUTH: what would not be the same at every replica
    25: ProgrammingError,  # RANGE: more or fewer parameters than there are places
}
"""By SQLite's primary result code; all others are operational."""


def error_of(failure: Failure, position: int = 0) -> DatabaseError:
    family = _FAMILIES.get(failure.code & 0xFF, OperationalError)
    if failure.kind == "Parameters":
        family = ProgrammingError  # it never came so far that a constraint could be broken
    return family(failure.message, code=failure.code, kind=failure.kind, position=position)


def refusal_of(kind: str, reason: str) -> Refused:
    family = Unauthorised if kind in {"password", "role"} else Refused
    return family(reason, kind=kind)
