"""Rows: bundles of the order as columns, one row a bundle or one row an action.

Columns are made one by one, and bodies are opened by a decoder that takes what most of them have: no blobs, no infinite
numbers. What it refuses is opened again, more slowly. Values are shown as JSON, with an object for what JSON does not
have: `{"blob": "00ff"}`, `{"real": "inf"}`, `{"text": "ff"}` for text that is no UTF-8. Nothing is lost: `bundles`
has every byte.

The component is the one that the origin was in when it took the action; so `NOT is_primary` is what was accepted
outside of the primary component. In which one it was ordered the order does not say: replicas learn of one place in
different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from greenline.access import wire
from greenline.kernel.actions import Action, Outcome, Series, Verdict, declared, open_packed
from greenline.kernel.codec import Garbled
from greenline.kernel.database import System
from greenline.kernel.statements import (
    NOT_SAID,
    Body,
    Conflict,
    Failure,
    Member,
    Result,
    Role,
    Statement,
    Work,
    body_of,
    encode,
    reply_of,
)
from greenline.replication.port import BundleId, Where

_COMPONENT = [
    pa.field("component", pa.string()),  # who was connected with the origin, itself among them: p q r
    pa.field("is_primary", pa.bool_()),  # that was the primary component
    pa.field("prim_index", pa.int64()),  # of the last primary component that the origin knew; its own, if it was one
]
BUNDLES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("digest", pa.binary(), nullable=False),  # what the order comes to with it
        pa.field("origin", pa.string(), nullable=False),  # the server that made it
        pa.field("number", pa.int64(), nullable=False),  # among those of that server
        *_COMPONENT,
        pa.field("actions", pa.int32(), nullable=False),  # how many
        pa.field("content", pa.int64(), nullable=False),  # its checksum, as the digest has it
        pa.field("chunks", pa.list_(pa.field("element", pa.binary(), nullable=False)), nullable=False),
        pa.field("change", pa.binary(), nullable=False),  # of the cluster itself, or nothing
        pa.field("system", pa.binary(), nullable=False),  # what the database does here by itself
    ]
)

ACTIONS = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("sub", pa.int32(), nullable=False),
        pa.field("session", pa.string()),  # none, if it cannot be opened
        pa.field("number", pa.int64()),
        pa.field("is_relaxed", pa.bool_()),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("bundle", pa.int64(), nullable=False),  # its number among those of its origin
        *_COMPONENT,
        pa.field("kind", pa.string(), nullable=False),  # work, role, member, or garbled
        pa.field("time", pa.timestamp("us", tz="UTC")),  # when its client asked for it, by the client's clock
        pa.field("statements", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("parameters", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("verdict", pa.string()),  # none, as long as nobody has applied it
        pa.field("outcome", pa.string()),
        pa.field("is_again", pa.bool_()),  # it was decided at an earlier position
    ]
)

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


class _Rows(msgspec.Struct, gc=False):
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


_AT_ONCE = 16
"""So few bodies are not parted again to find one that is not plain."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)
_NOTHING_EXPECTED = encode(NOT_SAID)
_NO_PARAMETERS = encode(()) + _NOTHING_EXPECTED
_plain_work = msgspec.msgpack.Decoder(_Work).decode
_plain_rest = msgspec.msgpack.Decoder(tuple[tuple[_Plain, ...], bytes]).decode
"""Of a statement: its parameters, and what it is expected to come to."""
_PAIR = encode((0, 0))[:1]
_system = msgspec.msgpack.Decoder(tuple[System, ...]).decode
_results = msgspec.msgpack.Decoder(tuple[Result, ...]).decode
_many_results = msgspec.msgpack.Decoder(list[tuple[Result]]).decode
_LIST = b"\xdd"
"""Before its length in four bytes: a list, packed."""
_json_encoder = msgspec.json.Encoder()


def bundles_batch(bundles: Sequence[wire.Bundle], digests: Sequence[bytes]) -> pa.RecordBatch:
    """One row for each; `digests` are what the order comes to with each of them."""
    chunks = [bundle.actions for bundle in bundles]
    columns = [
        pa.array([bundle.position for bundle in bundles], pa.int64()),
        pa.array(digests, pa.binary()),
        pa.array([bundle.bundle.creator for bundle in bundles], pa.string()),
        pa.array([bundle.bundle.index for bundle in bundles], pa.int64()),
        *_components(bundles),
        pa.array([sum(map(declared, each)) for each in chunks], pa.int32()),
        pa.array([bundle.content for bundle in bundles], pa.int64()),
        _listed(list(map(len, chunks)), pa.array(list(chain.from_iterable(chunks)), pa.binary())),
        pa.array([bundle.change for bundle in bundles], pa.binary()),
        pa.array([encode(bundle.system) for bundle in bundles], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BUNDLES)


def bundles_of(batch: pa.RecordBatch) -> list[wire.Bundle]:
    """What such rows were made from."""
    names = (
        "position",
        "origin",
        "number",
        "chunks",
        "change",
        "content",
        "system",
        *(each.name for each in _COMPONENT),
    )
    columns = [batch.column(name).to_pylist() for name in names]
    return [
        wire.Bundle(
            position, BundleId(origin, number), tuple(chunks), change, content, _system(system), _where(origin, *there)
        )
        for position, origin, number, chunks, change, content, system, *there in zip(*columns, strict=True)
    ]


def _components(bundles: Sequence[wire.Bundle]) -> list[pa.Array]:
    found = [
        (None, None, None) if where is None else (" ".join(where.members), where.is_primary, where.prim_index)
        for where in (bundle.where for bundle in bundles)
    ]
    columns = zip(*found, strict=True) if found else ([] for _ in _COMPONENT)
    return [pa.array(list(column), field.type) for column, field in zip(columns, _COMPONENT, strict=True)]


def _where(origin: str, component: str | None, is_primary: bool | None, prim_index: int | None) -> Where | None:
    if component is None or is_primary is None or prim_index is None:
        return None
    return Where(origin, is_primary, prim_index, tuple(component.split()))


def actions_batch(
    bundles: Sequence[wire.Bundle], outcomes: Sequence[Sequence[Outcome]] | None = None
) -> pa.RecordBatch:
    """One row for each action; `outcomes` are what those of each bundle came to, if somebody has applied them."""
    counts = [sum(map(declared, bundle.actions)) for bundle in bundles]
    rows = _opened([chunk for bundle in bundles for chunk in bundle.actions])
    many = sum(counts)
    assert many == len(rows.numbers), "as many actions as chunks declare, garbled or not"
    known = outcomes if outcomes is None else _flat(bundles, counts, outcomes)
    of, run = places(counts), places(rows.many)
    columns = [
        pa.array([bundle.position for bundle in bundles], pa.int64()).take(of),
        counted(counts),
        pa.array(rows.sessions, pa.string()).take(run),
        _whole(rows.numbers),
        pa.array(rows.relaxed, pa.bool_()).take(run),
        pa.array([bundle.bundle.creator for bundle in bundles], pa.string()).take(of),
        pa.array([bundle.bundle.index for bundle in bundles], pa.int64()).take(of),
        *(column.take(of) for column in _components(bundles)),
        pa.array(rows.kinds, pa.string()).take(run),
        _whole(rows.times).cast(pa.timestamp("us", tz="UTC")).take(run),
        _listed(rows.counts, pa.array(rows.statements, pa.string())).take(run),
        _listed(rows.parameter_counts, pa.array(rows.parameters, pa.binary()).cast(pa.string())),
        *_outcome_columns(known, many),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ACTIONS)


# Actions.


def _opened(chunks: Sequence[bytes]) -> _Rows:
    """A series says most of it once; all that stands between two series is opened together."""
    parts: list[_Rows] = []
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


def _garbled(many: int) -> _Rows:
    nothing = [None]
    return _Rows([many], nothing, nothing, ["garbled"], nothing, [0], [], nothing * many, [0] * many, [])


def _series(series: Series) -> _Rows | None:
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
    except (*_UNREADABLE, ValueError):
        return None
    numbers = range(series.first, series.first + many)
    common_to_all = [series.session], [False], ["work"], [work.now], [1], [statement.sql]
    return _Rows([many], *common_to_all, numbers, [1] * many, _lines(parameters))


def _each(actions: Sequence[Action]) -> _Rows:
    """Those that are plain together, and those that are not one by one."""
    try:
        works = list(map(_plain_work, [action.body for action in actions]))
    except _UNREADABLE:
        if len(actions) <= _AT_ONCE:
            return _joined(list(map(_any, actions)))
        half = len(actions) // 2
        return _joined([_each(actions[:half]), _each(actions[half:])])
    statements = [each for work in works for each in work.statements]
    counts = [len(work.statements) for work in works]
    return _Rows(
        [1] * len(works),
        [action.session for action in actions],
        [action.is_relaxed for action in actions],
        ["work"] * len(works),
        [work.now for work in works],
        counts,
        [each.sql for each in statements],
        [action.number for action in actions],
        counts,
        _lines([each.parameters for each in statements]),
    )


def _any(action: Action) -> _Rows:
    kind, now, statements, parameters = _shown_body(action.body)
    shown = [action.session], [action.is_relaxed], [kind], [now], [len(statements)], statements
    return _Rows([1], *shown, [action.number], [len(parameters)], parameters)


def _shown_body(data: bytes) -> tuple[str, int | None, list[str], list[bytes]]:
    """Its kind, when it was asked for, its statements and their parameters."""
    try:
        body: Body = body_of(data)
    except Garbled:
        return "garbled", None, [], []
    match body:
        case Work(now, _, statements):
            return "work", now, [each.sql for each in statements], [_json(each.parameters) for each in statements]
        case Role(user, role, verifier):
            # What a password is checked against is nobody's business here.
            return "role", None, [], [_json({"user": user, "role": role if verifier else None})]
        case Member(name, address, admin, clients):
            shown = {"name": name, "address": address, "admin": admin, "clients": clients}
            return "member", None, [], [_json(shown)]


def _joined(parts: Sequence[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    fields = _Rows.__struct_fields__
    return _Rows(*(list(chain.from_iterable(getattr(part, field) for part in parts)) for field in fields))


# Values.


def _lines(values: Sequence[object]) -> list[bytes]:
    """Each as JSON, which has no line breaks but those between what was encoded."""
    return _json_encoder.encode_lines(values).split(b"\n")[:-1]


def shown(value: object) -> str:
    """A value of SQL, as JSON."""
    return _json(value).decode()


def _json(value: object) -> bytes:
    return _json_encoder.encode(_shown(value))


def _shown(value: object) -> object:
    match value:
        case bytes():
            return {"blob": value.hex()}
        case float() if value - value != 0:
            return {"real": str(value)}
        case msgspec.msgpack.Ext(data=data):
            return {"text": bytes(data).hex()}
        case dict():
            return {str(key): _shown(each) for key, each in value.items()}
        case tuple() | list():
            return [_shown(each) for each in value]
        case _:
            return value


# Outcomes.


def _flat(
    bundles: Sequence[wire.Bundle], counts: Sequence[int], outcomes: Sequence[Sequence[Outcome]]
) -> list[Outcome]:
    for bundle, count, known in zip(bundles, counts, outcomes, strict=True):
        if len(known) != count:
            raise ValueError(f"position {bundle.position} has {count} actions, and {len(known)} outcomes")
    return list(chain.from_iterable(outcomes))


def _outcome_columns(outcomes: Sequence[Outcome] | None, many: int) -> list[pa.Array]:
    if outcomes is None:
        return [pa.nulls(many, pa.string()), pa.nulls(many, pa.string()), pa.nulls(many, pa.bool_())]
    return [
        _verdicts(outcomes),
        _plainly_shown(outcomes) or pa.array(map(_outcome, outcomes), pa.binary(), size=many).cast(pa.string()),
        pa.array([each.is_again for each in outcomes], pa.bool_()),
    ]


def _verdicts(outcomes: Sequence[Outcome]) -> pa.Array:
    """Mostly one: to ask each for its name takes long."""
    several = {each.verdict for each in outcomes}
    if len(several) == 1:
        return pa.repeat(several.pop().value, len(outcomes))
    return pa.array([each.verdict.value for each in outcomes], pa.string())


def _plainly_shown(outcomes: Sequence[Outcome]) -> pa.Array | None:
    """If all are of one statement that was done and returned nothing, as most are."""
    if {each.verdict for each in outcomes} != {Verdict.DONE}:
        return None
    try:
        # Each is one thing that was encoded, so that all of them after each other are a list of as many.
        data = _LIST + len(outcomes).to_bytes(4) + b"".join([each.value for each in outcomes])
        results = [result for (result,) in _many_results(data)]
    except _UNREADABLE:
        return None
    if any([result.columns for result in results]):  # noqa: C419  a list is twice as fast
        return None
    changes = pa.array([result.changes for result in results], pa.int64()).cast(pa.string())
    last_ids = pa.array([result.last_id for result in results], pa.int64()).cast(pa.string())
    parts = '[{"changes":', changes, ',"last_id":', last_ids, "}]"
    return pc.binary_join_element_wise(*parts, "")


def _outcome(outcome: Outcome) -> bytes | None:
    """Of what is done, what each statement came to; of what is not, why."""
    if not outcome.value:
        return None
    try:
        if outcome.verdict is Verdict.DONE:
            return _json(list(map(_result, _results(outcome.value))))
        return _json(_reason(reply_of(outcome.value)))
    except (Garbled, *_UNREADABLE):
        return _json(outcome.value)  # of a procedure, which may answer anything


def _result(result: Result) -> dict[str, Any]:
    shown: dict[str, Any] = {"changes": result.changes, "last_id": result.last_id}
    return {**shown, "columns": result.columns, "rows": result.rows} if result.columns else shown


def _reason(reply: Result | Failure | Conflict) -> dict[str, Any]:
    match reply:
        case Failure(code, kind, message, statement):
            return {"statement": statement, "kind": kind, "code": code, "message": message}
        case Conflict(statement):
            return {"statement": statement}
        case Result():
            return _result(reply)


# Columns.


def places(counts: Sequence[int]) -> pa.Array:
    """0 so many times as the first says, 1 so many times as the second: to take what some have in common for each."""
    some = [(number, end) for number, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True)) if count]
    numbers, ends = pa.array([n for n, _ in some], pa.int32()), pa.array([end for _, end in some], pa.int32())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, numbers))


def counted(counts: Sequence[int]) -> pa.Array:
    """From 0 up to as many as the first says, again from 0 up to as many as the second."""
    every = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int32()), sum(counts)), start=-1)
    before = pa.array(list(accumulate(counts, initial=0))[:-1], pa.int32())
    return pc.subtract(every, before.take(places(counts)))


def _listed(counts: Sequence[int], values: pa.Array) -> pa.Array:
    """So many of the values for each row."""
    offsets = pa.array(list(accumulate(counts, initial=0)), pa.int32())
    element = pa.field("element", values.type, nullable=False)
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(element))


def _whole(values: Sequence[int | None]) -> pa.Array:
    """A client may write any number into an action; one of more than 64 bits is not shown."""
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        fitting = [each if each is not None and -(1 << 63) <= each < 1 << 63 else None for each in values]
        return pa.array(fitting, pa.int64())
