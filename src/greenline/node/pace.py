"""Pace: how many a second, over the last seconds, from counts that only grow."""

from __future__ import annotations

from collections import deque

SECONDS = 5.0


class Pace:
    """Counts as they were lately, one a tick."""

    def __init__(self) -> None:
        self._lately: deque[tuple[float, int]] = deque()

    def note(self, now: float, count: int) -> None:
        lately = self._lately
        if lately and count < lately[-1][1]:
            lately.clear()  # the counter began again
        lately.append((now, count))
        while len(lately) > 2 and lately[1][0] <= now - SECONDS:
            lately.popleft()

    @property
    def rate(self) -> float:
        if len(self._lately) < 2:
            return 0.0
        (then, before), (now, count) = self._lately[0], self._lately[-1]
        return (count - before) / (now - then) if now > then else 0.0
