"""Holding: work on the database's files that can be asked to let go of them for a while.

Whoever works does it piece by piece, with no file open in between that is in nobody's hands. Who replaces the file
holds all the others up, and lets them go on when the new one is in place. What the writer is to do for somebody,
between two transactions, it does not do any more for one who has stopped waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

import apsw

_HASTEN_SECONDS = 0.02
_LOOK_SECONDS = 0.05


class Hold:
    def __init__(self, let_go: Callable[[], None] = lambda: None) -> None:
        """`let_go` of what is kept from one piece to the next: called by whoever holds us up."""
        self._let_go = let_go
        self._lock = Lock()
        """Held by who works, or by who has stopped us."""
        self._may_begin = Event()
        self._may_begin.set()
        self._counting = Lock()
        self._holders = 0
        """Who wants us to stop, or has stopped us: several may at the same time."""
        self._is_stopped = False

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
        self.no_more()
        while not self._lock.acquire(timeout=_HASTEN_SECONDS):
            hasten()
        self._is_stopped = True
        self._let_go()

    def no_more(self) -> None:
        """What is under way goes on; nobody begins until `go_on`."""
        with self._counting:
            self._holders += 1
            self._may_begin.clear()

    def is_stopped(self, is_over: Callable[[], bool]) -> bool:
        """After `no_more`: wait until nobody works, as long as it is not over. True: nobody does until `go_on`."""
        while not self._lock.acquire(timeout=_HASTEN_SECONDS):
            if is_over():
                self._hold_no_more()
                return False
        self._is_stopped = True
        self._let_go()
        return True

    def go_on(self) -> None:
        """By who has stopped us; or by who closes us while we are, as the file could not be replaced."""
        with self._counting:
            was_stopped, self._is_stopped = self._is_stopped, False
        if was_stopped:
            self._lock.release()
            self._hold_no_more()

    def _hold_no_more(self) -> None:
        with self._counting:
            self._holders -= 1
            if not self._holders:
                self._may_begin.set()


class Turn:
    """To be done by the writer, while we wait for it; or not at all."""

    def __init__(self, do: Callable[[apsw.Connection], None]) -> None:
        self._do = do
        self._lock = Lock()
        self._is_given_up = False
        self._is_done = Event()

    def __call__(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._is_given_up:
                self._do(connection)
                self._is_done.set()

    def wait(self, is_over: Callable[[], bool]) -> bool:
        """Was it done? `is_over` tells when to give up: a transaction may stay open as long as the engine likes."""
        while not self._is_done.wait(_LOOK_SECONDS):
            if is_over():
                with self._lock:
                    self._is_given_up = not self._is_done.is_set()
                    return not self._is_given_up
        return True
