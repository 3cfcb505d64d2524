"""Opened: what actions ask for. Most bodies are opened by a decoder that takes what most of them have: no blobs, no
infinite numbers. What it refuses is opened again, more slowly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Annotated

import msgspec

from greenline.kernel.actions import Action, Series, declared, open_packed
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import NOT_SAID, Body, Member, Role, Statement, Work, body_of, encode
from greenline.pipeline.rows_json import as_json, lines

_LARGEST = 1.7976931348623157e308
_Finite = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_Plain = int | _Finite | str | None


class _Statement(msgspec.Struct, array_like=True, gc=False):
    sql: str
    parameters: tuple[_Plain, ...] | dict[str, _Plain] = ()
    expected: bytes = NOT_SAID


class _Work(msgspec.Struct, array_like=True, tag=1, gc=False):
    """`Work`, if JSON has all its values."""

    now: int
    seed: int
    statements: tuple[_Statement, ...]


class Opened(msgspec.Struct, gc=False):
    """What is shown of some actions, column by column. Some that follow each other may have most of it in common."""

    many: Sequence[int]
    """So many follow each other and have the same session, kind, time and statements."""
    sessions: Sequence[str | None]
    relaxed: Sequence[bool | None]
    kinds: Sequence[str]
    times: Sequence[int | None]
    counts: Sequence[int]
    """How many statements each of those has."""
    statements: Sequence[str]
    """Of all, one after the other."""
    numbers: Sequence[int | None]
    """From here on, of each action."""
    parameter_counts: Sequence[int]
    parameters: Sequence[bytes]
    """As JSON."""


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)
_AT_ONCE = 16
"""So few bodies are not parted again to find one that is not plain."""
_NOTHING_EXPECTED = encode(NOT_SAID)
_NO_PARAMETERS = encode(()) + _NOTHING_EXPECTED
_plain_work = msgspec.msgpack.Decoder(_Work).decode
_plain_rest = msgspec.msgpack.Decoder(tuple[tuple[_Plain, ...], bytes]).decode
"""Of a statement: its parameters, and what it is expected to come to."""
_PAIR = encode((0, 0))[:1]


def opened(chunks: Sequence[bytes]) -> Opened:
    """A series says most of it once; all that stands between two series is opened together."""
    parts: list[Opened] = []
    single: list[Action] = []
    for chunk in chunks:
        try:
            packed = open_packed(chunk)
        except Garbled:
            parts += [_each(single), _garbled(declared(chunk))]
            single = []
            continue
        if not isinstance(packed, Series):
            single += packed
        elif (rows := _series(packed)) is not None:
            parts += [_each(single), rows]
            single = []
        else:
            single += packed.actions
    return _joined([*parts, _each(single)])


def _garbled(many: int) -> Opened:
    nothing = [None]
    return Opened([many], nothing, nothing, ["garbled"], nothing, [0], [], nothing * many, [0] * many, [])


def _series(series: Series) -> Opened | None:
    """If each does one plain statement, and they differ in its parameters only."""
    many = len(series.tails)
    try:
        work = _plain_work(series.head + series.tails[0])
        (statement,) = work.statements
        before = encode(Work(work.now, work.seed, (Statement(statement.sql),)))[: -len(_NO_PARAMETERS)]
        if not series.head.startswith(before):
            return None
        common = _PAIR + series.head[len(before) :]
        parameters, expected = zip(*map(_plain_rest, [common + tail for tail in series.tails]), strict=True)
        if set(expected) != {NOT_SAID}:
            return None
    except (*UNREADABLE, ValueError):
        return None
    numbers = range(series.first, series.first + many)
    common_to_all = [series.session], [False], ["work"], [work.now], [1], [statement.sql]
    return Opened([many], *common_to_all, numbers, [1] * many, lines(parameters))


def _each(actions: Sequence[Action]) -> Opened:
    """Those that are plain together, and those that are not one by one."""
    try:
        works = list(map(_plain_work, [action.body for action in actions]))
    except UNREADABLE:
        if len(actions) <= _AT_ONCE:
            return _joined(list(map(_any, actions)))
        half = len(actions) // 2
        return _joined([_each(actions[:half]), _each(actions[half:])])
    statements = [each for work in works for each in work.statements]
    counts = [len(work.statements) for work in works]
    return Opened(
        [1] * len(works),
        [action.session for action in actions],
        [action.is_relaxed for action in actions],
        ["work"] * len(works),
        [work.now for work in works],
        counts,
        [each.sql for each in statements],
        [action.number for action in actions],
        counts,
        lines([each.parameters for each in statements]),
    )


def _any(action: Action) -> Opened:
    kind, now, statements, parameters = _shown_body(action.body)
    shown = [action.session], [action.is_relaxed], [kind], [now], [len(statements)], statements
    return Opened([1], *shown, [action.number], [len(parameters)], parameters)


def _shown_body(data: bytes) -> tuple[str, int | None, list[str], list[bytes]]:
    """Its kind, when it was asked for, its statements and their parameters."""
    try:
        body: Body = body_of(data)
    except Garbled:
        return "garbled", None, [], []
    match body:
        case Work(now, _, statements):
            return "work", now, [each.sql for each in statements], [as_json(each.parameters) for each in statements]
        case Role(user, role, verifier):
            # What a password is checked against is nobody's business here.
            return "role", None, [], [as_json({"user": user, "role": role if verifier else None})]
        case Member(name, address, admin, clients):
            shown = {"name": name, "address": address, "admin": admin, "clients": clients}
            return "member", None, [], [as_json(shown)]


def _joined(parts: Sequence[Opened]) -> Opened:
    if len(parts) == 1:
        return parts[0]
    fields = Opened.__struct_fields__
    return Opened(*(list(chain.from_iterable(getattr(part, field) for part in parts)) for field in fields))
