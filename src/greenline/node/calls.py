"""Calls to a node's admin port, for commands and for a node that joins: one request, one answer, never a traceback."""

from __future__ import annotations

import http.client
from typing import Any

import msgspec

from greenline.node.config import written
from greenline.node.transport import Address

TIMEOUT_S = 3.0
_MOST_BYTES = 4 << 20


class NoAnswer(Exception):
    """Nobody answers there, or somebody who does not speak HTTP."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error(self) -> str:
        """What the node says is wrong."""
        try:
            found: Any = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            found = None
        if isinstance(found, dict) and isinstance(found.get("error"), str):
            return str(found["error"])
        return f"it answered {self.status}; is a Greenline node there?"


def call(
    address: Address,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    credential: str | None = None,
    timeout: float = TIMEOUT_S,
) -> Answer:
    headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    connection = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        connection.request(method, path, body=body or None, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(_MOST_BYTES))
    except (OSError, http.client.HTTPException) as error:
        because = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoAnswer(f"no answer from http://{written(address)}: {because}") from None
    finally:
        connection.close()
