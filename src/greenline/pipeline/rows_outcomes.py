"""What actions came to, as columns: `verdict`, `outcome` and `is_again`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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

MOST_BYTES = 64 << 10
"""Of what an action returned. What is more is not kept: a bundle cannot be cut, and may have thousands."""
_results = msgspec.msgpack.Decoder(tuple[Result, ...]).decode
_many_results = msgspec.msgpack.Decoder(list[tuple[Result]]).decode
_LIST = b"\xdd"
"""Before its length in four bytes: a list, packed."""


class Came(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the actions of a bundle came to, by columns: a clerk reads objects, one for each action, four times as
    slowly."""

    values: list[bytes]
    verdicts: list[Verdict]
    """One, if all have the same, as most have."""
    again: list[int]
    """Places of those that were decided before."""

    def __len__(self) -> int:
        return len(self.values)


def came(outcomes: Sequence[Outcome]) -> Came:
    values = [each.value for each in outcomes]
    if max(map(len, values), default=0) > MOST_BYTES:
        values = [value if len(value) <= MOST_BYTES else b"" for value in values]
    verdicts = list({each.verdict for each in outcomes})
    if len(verdicts) > 1:
        verdicts = [each.verdict for each in outcomes]
    return Came(values, verdicts, [place for place, each in enumerate(outcomes) if each.is_again])


def check(bundles: Sequence[wire.Bundle], counts: Sequence[int], known: Sequence[Came]) -> None:
    for bundle, count, each in zip(bundles, counts, known, strict=True):
        if len(each) != count:
            raise ValueError(f"position {bundle.position} has {count} actions, and {len(each)} outcomes")


def outcome_columns(known: Sequence[Came] | None, many: int) -> list[pa.Array]:
    if known is None:
        return [pa.nulls(many, pa.string()), pa.nulls(many, pa.string()), pa.nulls(many, pa.bool_())]
    values = list(chain.from_iterable([each.values for each in known]))
    several = {verdict for each in known for verdict in each.verdicts}
    verdicts = [verdict for each in known for verdict in _spread(each)] if len(several) > 1 else []
    return [
        pa.array([each.value for each in verdicts], pa.string()) if verdicts else _repeated(several, many),
        (several == {Verdict.DONE} and _plainly_shown(values)) or _shown(verdicts or [*several] * many, values),
        _again(known, many),
    ]


def _spread(came: Came) -> list[Verdict]:
    return came.verdicts if len(came.verdicts) == len(came) else came.verdicts * len(came)


def _repeated(verdicts: Collection[Verdict], many: int) -> pa.Array:
    """Mostly one: to ask each for its name takes long."""
    return pa.repeat(pa.scalar(next(iter(verdicts), Verdict.DONE).value, pa.string()), many)


def _again(known: Sequence[Came], many: int) -> pa.Array:
    if not any(each.again for each in known):
        return pa.repeat(pa.scalar(False), many)
    again, first = [False] * many, 0
    for each in known:
        for place in each.again:
            again[first + place] = True
        first += len(each)
    return pa.array(again, pa.bool_())


def _plainly_shown(values: Sequence[bytes]) -> pa.Array | None:
    """If all are of one statement that was done and returned nothing, as most are."""
    try:
        # Each is one thing that was encoded, so that all of them after each other are a list of as many.
        data = _LIST + len(values).to_bytes(4) + b"".join(values)
        results = [result for (result,) in _many_results(data)]
    except UNREADABLE:
        return None
    if any([result.columns for result in results]):  # noqa: C419  a list is twice as fast
        return None
    changes = pa.array([result.changes for result in results], pa.int64()).cast(pa.string())
    last_ids = pa.array([result.last_id for result in results], pa.int64()).cast(pa.string())
    parts = '[{"changes":', changes, ',"last_id":', last_ids, "}]"
    return pc.binary_join_element_wise(*parts, "")


def _shown(verdicts: Sequence[Verdict], values: Sequence[bytes]) -> pa.Array:
    return pa.array(map(_outcome, verdicts, values), pa.binary(), size=len(values)).cast(pa.string())


def _outcome(verdict: Verdict, value: bytes) -> bytes | None:
    """Of what is done, what each statement came to; of what is not, why."""
    if not value:
        return None
    try:
        if verdict is Verdict.DONE:
            return as_json(list(map(_result, _results(value))))
        return as_json(_reason(reply_of(value)))
    except (Garbled, *UNREADABLE):
        return as_json(value)  # of a procedure, which may answer anything


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
