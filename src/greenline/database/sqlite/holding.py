"""Holding: work on the database's files that can be asked to let go of them for a while.

Whoever works does it piece by piece, with no file open in between that is in nobody's hands. Who replaces the file
holds all the others up, and lets them go on when the new one is in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

_HASTEN_SECONDS = 0.02


class Hold:
    def __init__(self) -> None:
        self._lock = Lock()
        self._may_begin = Event()
        self._may_begin.set()

    @property
    def is_wanted(self) -> bool:
        """Somebody waits for us to stop, or we are stopped."""
        return not self._may_begin.is_set()

    @contextmanager
    def piece(self) -> Iterator[None]:
        self._may_begin.wait()
        with self._lock:
            yield

    def stop(self, hasten: Callable[[], None] = lambda: None) -> None:
        """Returns when nobody works; nobody does until `go_on`. `hasten` is called as long as somebody still does."""
        self._may_begin.clear()
        while not self._lock.acquire(timeout=_HASTEN_SECONDS):
            hasten()

    def go_on(self) -> None:
        self._lock.release()
        self._may_begin.set()
