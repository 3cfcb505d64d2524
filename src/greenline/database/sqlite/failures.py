"""Failures: what a client is told of an error, and which errors are one's own fault and not the client's."""

from __future__ import annotations

import apsw

from greenline.database.sqlite.broken import is_breaking
from greenline.database.sqlite.connection import because
from greenline.database.sqlite.determinism import Moment
from greenline.kernel.statements import Failure

OF_PARAMETERS = (apsw.BindingsError, KeyError, TypeError, OverflowError, ValueError)
"""What is raised for parameters that do not fit, and for text that is none, or has a null character in it."""

GARBLED = Failure(
    apsw.SQLITE_MISUSE, "Garbled", "this action cannot be opened: its client and the cluster do not agree"
)
NOT_RELAXED = Failure(
    apsw.SQLITE_MISUSE, "NotRelaxed", "its place in the order matters: SQL cannot be relaxed; ask for it with a number"
)


class Fails(Exception):
    """A statement came to this."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_of(error: Exception, connection: apsw.Connection, moment: Moment, statement: int) -> Failure:
    """What a client is told; raises again what is no outcome."""
    if isinstance(error, apsw.BindingsError) or not isinstance(error, apsw.Error):
        return Failure(apsw.SQLITE_MISMATCH, "Parameters", _of_parameters(error), statement)
    if is_breaking(error) or (isinstance(error, apsw.FullError) and moment.has_write_failed):
        raise error
    code = int(getattr(error, "extendedresult", apsw.SQLITE_ERROR))
    message = str(error)
    if code == apsw.SQLITE_AUTH or message.startswith("not authorized"):  # of functions it only says so
        message = f"{message}: {because(connection)}"
    return Failure(code, _kind(code), message, statement)


def misuse(kind: str, message: str, statement: int = 0) -> Failure:
    return Failure(apsw.SQLITE_MISUSE, kind, message, statement)


def too_slow(message: str, statement: int) -> Failure:
    return Failure(apsw.SQLITE_INTERRUPT, "TooSlow", message, statement)


def too_large(message: str, statement: int) -> Failure:
    return Failure(apsw.SQLITE_TOOBIG, "TooLarge", message, statement)


def _of_parameters(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "a text in the result is not UTF-8: cast it to a blob"
    if isinstance(error, UnicodeError):
        return "a text in the parameters is not Unicode"
    if isinstance(error, KeyError):
        return f"there is no value for the parameter {error.args[0]}"
    return str(error)


def _kind(code: int) -> str:
    """`ConstraintUnique` of SQLITE_CONSTRAINT_UNIQUE."""
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code & 0xFF, "")
    return "".join(part.capitalize() for part in str(name).split("_")[1:])
