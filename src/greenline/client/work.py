"""Bodies: what a caller writes, SQL and parameters, as the database is asked it. Time and chance are fixed here."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from greenline.client.errors import DataError, InterfaceError
from greenline.kernel.statements import Parameters, Question, Statement, Trial, Work, encode

Given = Sequence[Any] | Mapping[str, Any]
"""Parameters as callers give them: for `?`, in order; or for `:name`, by name."""

_PLAIN = frozenset({int, float, str, bytes, type(None)})
_chance = random.Random(secrets.randbits(128)).getrandbits
_last = (0, 0)


def statement(sql: str, parameters: Given = (), expected: bytes = b"") -> Statement:
    return Statement(sql, plain(parameters), expected)


def plain(parameters: Given) -> Parameters:
    """What SQL knows; anything else would be something else when it is read again."""
    if type(parameters) is tuple and _PLAIN.issuperset(map(type, parameters)):
        return parameters
    if isinstance(parameters, Mapping):
        return {str(name): _plain_value(value) for name, value in parameters.items()}
    if isinstance(parameters, str | bytes):
        raise InterfaceError(f"parameters are several values: write ({parameters!r},)")
    return tuple([_plain_value(value) for value in parameters])


def _plain_value(value: Any) -> Any:
    match value:
        case None | str() | bytes():
            return value
        case bool() | int():
            return int(value)
        case float():
            return float(value)
        case bytearray() | memoryview():
            return bytes(value)
    raise InterfaceError(
        f"SQL knows no {type(value).__name__}: give an int, float, str, bytes or None (a time as text, say)"
    )


def moment() -> tuple[int, int]:
    """What time it is, in microseconds, and where chance begins.

    To the millisecond, as SQL tells it, and the same for what is asked within one: such requests have more in common
    (`kernel.actions.Series`). Chance is still each one's own, because it is drawn from the session and the number, too.
    """
    global _last
    now = time.time_ns() // 1_000_000 * 1000
    if now != _last[0]:
        _last = now, _chance(63)
    return _last


def body(statements: tuple[Statement, ...], at: tuple[int, int]) -> bytes:
    return _encoded(Work(*at, statements))


def question(asked: Statement) -> bytes:
    """It has no session and no number to draw chance from, only its own beginning."""
    now, _ = moment()
    return _encoded(Question(now, _chance(63), asked))


def trial(statements: tuple[Statement, ...], at: tuple[int, int]) -> bytes:
    return _encoded(Trial(Work(*at, statements)))


def _encoded(what: Work | Question | Trial) -> bytes:
    try:
        return encode(what)
    except (OverflowError, UnicodeEncodeError) as error:
        raise DataError(f"a parameter is nothing that SQL can hold: {error}") from error
