"""JSON as the HTTP port speaks it: what may be sent, and how values and results are written.

JSON has no bytes: a blob is {"base64": "..."}. It has no infinities either: {"float": "inf"}.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Annotated, Any, Literal

import msgspec

from greenline.access import wire
from greenline.database.sessions import LARGEST
from greenline.kernel.actions import Action, Outcome, opened
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import (
    Conflict,
    Failure,
    Parameters,
    Result,
    Role,
    Statement,
    Value,
    Work,
    body_of,
    results_of,
)
from greenline.node.edge import Declined
from greenline.replication.port import Level, Reads, Where

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every update may say. Without a session the node makes one, and tells its name."""

    session: str | None = None
    number: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] | None = None
    received: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)] = 0
    level: Level = Level.LOCAL
    wait: Literal["green", "accepted"] = "green"


class Sql(_Asked, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /sql"""

    sql: str
    parameters: list[Any] | dict[str, Any] = []
    consistency: Reads | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)] = 0


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str
    parameters: list[Any] | dict[str, Any] = []

    @property
    def statement(self) -> Statement:
        return Statement(self.sql, parameters_of(self.parameters))


class Several(_Asked, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /batch and POST /transaction"""

    statements: Annotated[list[Said], msgspec.Meta(min_length=1)]


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /users"""

    user: str
    role: Literal["read", "write", "admin"] = "read"
    password: str | None = None
    """None: nobody any more."""


def parameters_of(given: list[Any] | dict[str, Any]) -> Parameters:
    if isinstance(given, dict):
        return {name: _value_of(each) for name, each in given.items()}
    return tuple(_value_of(each) for each in given)


def _value_of(given: Any) -> Value:
    match given:
        case bool():
            return int(given)
        case int() if not _SMALLEST <= given <= _LARGEST:
            raise Declined("malformed", f"{given} has more than 64 bits; send it as text")
        case None | int() | float() | str():
            return given
        case {"base64": str(text)} if len(given) == 1:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise Declined("malformed", f"{text[:20]!r} is no base64") from None
        case {"float": "inf" | "-inf" as text} if len(given) == 1:
            return float(text)
    raise Declined("malformed", 'a parameter is a number, a text, null, or {"base64": "..."} for bytes')


def value_json(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and math.isinf(value):
        return {"float": str(value)}
    return value


def result_json(result: Result) -> dict[str, Any]:
    return {
        "changes": result.changes,
        "last_id": result.last_id,
        "columns": result.columns,
        "rows": [[value_json(each) for each in row] for row in result.rows],
    }


def where_json(where: Where) -> dict[str, Any]:
    return {
        "server": where.server,
        "is_primary": where.is_primary,
        "prim_index": where.prim_index,
        "members": where.members,
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Of one that was done. Its results may not have been kept for who asks again."""
    return {
        "verdict": outcome.verdict,
        "position": outcome.position,
        "sub": outcome.sub,
        "is_again": outcome.is_again,
        "results": [result_json(each) for each in results_of(outcome.value)] if outcome.is_whole else None,
    }


def failure_json(failure: Failure | Conflict) -> dict[str, Any]:
    if isinstance(failure, Conflict):
        return {
            "error": "what it had read has changed since; begin again",
            "kind": "conflict",
            "statement": failure.statement,
            "retriable": True,
        }
    return {
        "error": failure.message,
        "kind": failure.kind,
        "code": failure.code,
        "statement": failure.statement,
        "retriable": False,
    }


def bundle_json(bundle: wire.Bundle) -> dict[str, Any]:
    """With what its actions say, as far as it can be opened."""
    return {
        "position": bundle.position,
        "bundle": str(bundle.bundle),
        "component": None if bundle.made_in is None else msgspec.structs.asdict(bundle.made_in),
        "change": value_json(bundle.change) if bundle.change else None,
        "actions": [_action_json(sub, each) for sub, each in enumerate(opened(bundle.actions))],
    }


def _action_json(sub: int, action: Action | None) -> dict[str, Any]:
    if action is None:
        return {"sub": sub, "garbled": True}
    told = {"sub": sub, "session": action.session, "number": action.number, "relaxed": action.is_relaxed}
    try:
        body = body_of(action.body)
    except Garbled:
        return told | {"body": value_json(action.body)}
    if isinstance(body, Work):
        return told | {"now": body.now, "seed": body.seed, "statements": [_statement_json(e) for e in body.statements]}
    if isinstance(body, Role):
        return told | {"user": body.user, "role": body.role, "is_dropped": not body.verifier}
    return told | {"member": msgspec.to_builtins(body)}


def _statement_json(statement: Statement) -> dict[str, Any]:
    given = statement.parameters
    if isinstance(given, dict):
        return {"sql": statement.sql, "parameters": {name: value_json(each) for name, each in given.items()}}
    return {"sql": statement.sql, "parameters": [value_json(each) for each in given]}
