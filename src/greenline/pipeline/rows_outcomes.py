"""What actions came to, as columns: `verdict`, `outcome` and `is_again`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from greenline.access import wire
from greenline.kernel.actions import Outcome, Verdict
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import Conflict, Failure, Result, reply_of
from greenline.pipeline.rows_json import as_json
from greenline.pipeline.rows_opened import UNREADABLE

_results = msgspec.msgpack.Decoder(tuple[Result, ...]).decode
_many_results = msgspec.msgpack.Decoder(list[tuple[Result]]).decode
_LIST = b"\xdd"
"""Before its length in four bytes: a list, packed."""


def flat(bundles: Sequence[wire.Bundle], counts: Sequence[int], outcomes: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    for bundle, count, known in zip(bundles, counts, outcomes, strict=True):
        if len(known) != count:
            raise ValueError(f"position {bundle.position} has {count} actions, and {len(known)} outcomes")
    return list(chain.from_iterable(outcomes))


def outcome_columns(outcomes: Sequence[Outcome] | None, many: int) -> list[pa.Array]:
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
    except UNREADABLE:
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
            return as_json(list(map(_result, _results(outcome.value))))
        return as_json(_reason(reply_of(outcome.value)))
    except (Garbled, *UNREADABLE):
        return as_json(outcome.value)  # of a procedure, which may answer anything


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
