"""The lag: how far behind the order somebody is, in positions and in seconds, without trusting anybody else's clock.

The order is looked at again and again. Whoever has come to a position is as late as the first look that saw more than
that; what a client's clock says of an action is not asked.
"""

from __future__ import annotations

import threading
from collections import deque

LOOKS = 100_000
"""So many are kept for somebody who is far behind; from then on the lag is told too small."""


class Lag:
    def __init__(self) -> None:
        self._looks: deque[tuple[int, float]] = deque(maxlen=LOOKS)
        """Positions that were new when it was looked at, and when that was."""
        self._reached = 0
        self._lock = threading.Lock()
        """One looks, another one comes on."""

    @property
    def newest(self) -> int:
        return self._looks[-1][0] if self._looks else self._reached

    @property
    def positions(self) -> int:
        return max(0, self.newest - self._reached)

    def seen(self, newest: int, now: float) -> None:
        """So far the order goes."""
        with self._lock:
            if newest > self.newest:
                self._looks.append((newest, now))

    def reached(self, position: int) -> None:
        """So far somebody has come."""
        with self._lock:
            self._reached = max(self._reached, position)
            while len(self._looks) > 1 and self._looks[0][0] <= self._reached:
                self._looks.popleft()

    def seconds(self, now: float) -> float:
        """Since when there is something that was not reached yet."""
        with self._lock:
            return next((now - at for position, at in self._looks if position > self._reached), 0.0)
