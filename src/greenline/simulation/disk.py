"""A disk: a log of frames with barriers. At a crash it loses any suffix of what came after the last one completed.

Forced writes take time and come one at a time, as the router asks for them. The disk can be slow, full, or fail.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from greenline.simulation.agenda import Agenda

FORCE_S = (0.0002, 0.002)
"""Shortest and longest forced write of a healthy disk."""


class DiskError(Exception):
    """A write that did not happen."""


class Disk:
    def __init__(self, agenda: Agenda, chance: Random) -> None:
        self.slowness = 1.0
        self.full_for = 0
        """How many causes keep it full."""
        self.fails = False
        """The next forced write fails."""
        self._agenda = agenda
        self._chance = chance
        self._frames: list[bytes] = []
        self._durable = 0
        self._torn = b""
        self._life = 0

    def contents(self) -> bytes:
        """What a process that starts now finds."""
        return b"".join(self._frames) + self._torn

    def write(self, frame: bytes) -> None:
        if self.full_for:
            raise DiskError("no space left")
        self._frames.append(frame)

    def force(self, done: Callable[..., None], failed: Callable[..., None], *args: object) -> None:
        """Make durable what was written by now; one of the two is called when it is known."""
        if self.fails or self.full_for:
            self.fails = False
            self._agenda.after(self._duration(), failed, *args)
        else:
            self._agenda.after(self._duration(), self._forced, self._life, len(self._frames), done, args)

    def crash(self, keep: float, tear: bool) -> None:
        """Lose a suffix of what was not forced: `keep` is the part of it that survives, a torn record after it."""
        unforced = len(self._frames) - self._durable
        kept = self._durable + round(keep * unforced)
        if tear and kept < len(self._frames):
            whole = self._frames[kept]
            self._torn = whole[: max(1, int(len(whole) * self._chance.random()))]
        del self._frames[kept:]
        self._durable = kept
        self._life += 1

    def reopen(self) -> None:
        """A process starts: it has read what was there and cut off the torn end."""
        self._torn = b""
        self._durable = len(self._frames)

    def _forced(self, life: int, upto: int, done: Callable[..., None], args: tuple[object, ...]) -> None:
        if life == self._life:
            self._durable = max(self._durable, upto)
            done(*args)

    def _duration(self) -> float:
        return self._chance.uniform(*FORCE_S) * self.slowness
