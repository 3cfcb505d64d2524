"""Values of SQL as JSON, with an object for what JSON does not have: `{"blob": "00ff"}`, `{"real": "inf"}`, and
`{"text": "ff"}` for text that is no UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_encoder = msgspec.json.Encoder()


def lines(values: Sequence[object]) -> list[bytes]:
    """Each as JSON, which has no line breaks but those between what was encoded."""
    return _encoder.encode_lines(values).split(b"\n")[:-1]


def shown(value: object) -> str:
    """A value of SQL, as JSON."""
    return as_json(value).decode()


def as_json(value: object) -> bytes:
    return _encoder.encode(_shown(value))


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
