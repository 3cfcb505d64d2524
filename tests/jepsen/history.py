"""A history: what clients asked for and were told, with the times of one clock, the load generator's.

An operation has been done (`ok`), or certainly has not and never will be (`fail`), or nobody knows (`unknown`): then it
may take effect at any time after it was called, or never. A history is kept on disk as it grows, a line an operation,
so that a run that failed can be judged again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

NEVER = float("inf")


class Ended(StrEnum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    client: str
    kind: str
    """`append`, `read list`, `write`, `compare and set`, ...: see `workload`."""
    key: str
    called: float
    """When, in seconds."""
    returned: float
    ended: Ended
    value: Any = None
    """What it was asked to write."""
    seen: Any = None
    """What it was told."""
    node: str = ""
    """Where the client was when it was told."""
    why: str = ""
    """It did not end well."""

    @property
    def end(self) -> float:
        """By then it has taken effect, if it ever does."""
        return NEVER if self.ended is Ended.UNKNOWN else self.returned

    @property
    def is_ok(self) -> bool:
        return self.ended is Ended.OK

    def __str__(self) -> str:
        asked = "" if self.value is None else f" {self.value}"
        seen = "" if self.seen is None else f" saw {_short(self.seen)}"
        return f"{self.client} {self.kind} {self.key}{asked} {self.ended}{seen} [{self.called:.3f}, {self.end:.3f}]"


def _short(seen: Any) -> str:
    if isinstance(seen, list) and len(seen) > 6:
        return f"[... {' '.join(map(str, seen[-5:]))}], {len(seen)} of them"
    return str(seen)


class Recorder:
    """Writes down operations as they end."""

    def __init__(self, path: Path) -> None:
        self.operations: list[Operation] = []
        self._file = path.open("wb")

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)
        self._file.write(msgspec.json.encode(operation) + b"\n")

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[Operation]:
    with path.open("rb") as file:
        return [msgspec.json.decode(line, type=Operation) for line in file]


def of_kinds(operations: Iterable[Operation], *kinds: str) -> Iterator[Operation]:
    return (each for each in operations if each.kind in kinds)


def by_key(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = defaultdict(list)
    for each in operations:
        found[each.key].append(each)
    return found
