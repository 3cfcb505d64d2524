"""The agenda: virtual time. Whatever will happen is on it; the earliest happens next, first come first served."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Agenda:
    __slots__ = ("_count", "_heap", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: float, do: Callable[..., None], *args: Any) -> None:
        """Put something on the agenda; what is past due happens now."""
        self._count += 1
        heappush(self._heap, (time if time > self.now else self.now, self._count, do, args))

    def after(self, delay: float, do: Callable[..., None], *args: Any) -> None:
        self._count += 1
        heappush(self._heap, (self.now + delay, self._count, do, args))

    def next_time(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def step(self) -> None:
        """Let the next thing happen."""
        self.now, _, do, args = heappop(self._heap)
        do(*args)
