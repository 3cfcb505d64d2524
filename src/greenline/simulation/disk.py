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
        self.failures: list[object] = []
        """What makes a forced write fail, each the next one."""
        self._agenda = agenda
        self._chance = chance
        self._frames: list[bytes] = []
        self._durable = 0
        """How many of them a crash leaves for sure."""
        self._gone = self._gone_bytes = 0
        """Frames that were discarded in this life, and their bytes."""
        self._life = 0

    def contents(self) -> bytes:
        """What a process that starts now finds."""
        return b"".join(self._frames)

    def cut(self, at: int) -> None:
        """Cut off what stands behind this byte."""
        assert not self._gone, "a log is cut before anything is discarded"
        left = sum(map(len, self._frames))
        while left > at:
            left -= len(self._frames.pop())
        self._durable = min(self._durable, len(self._frames))

    def discard(self, before: int) -> None:
        """Drop some of what stands before this place, from the front: all of it, or a part, or nothing yet.

        A place is counted from where the contents began that this life found.
        """
        needless, at = 0, self._gone_bytes
        while needless < len(self._frames) and at + len(self._frames[needless]) <= before:
            at += len(self._frames[needless])
            needless += 1
        assert needless <= self._durable, "what is discarded was superseded by something durable"
        dropped = self._chance.choice((needless, self._chance.randrange(needless + 1)))
        self._gone_bytes += sum(map(len, self._frames[:dropped]))
        self._gone += dropped
        self._durable -= dropped
        del self._frames[:dropped]

    def write(self, frame: bytes) -> None:
        if self.full_for:
            raise DiskError("no space left")
        self._frames.append(frame)

    def force(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """Make durable what was written by now; one of the two is called when it is known."""
        duration = self._chance.uniform(*FORCE_S) * self.slowness
        if self.full_for or self.failures:
            if self.failures:
                self.failures.pop(0)
            self._agenda.after(duration, self._over, self._life, 0, failed)
        else:
            self._agenda.after(duration, self._over, self._life, self._gone + len(self._frames), done)

    def crash(self, keep: float, tear: bool) -> None:
        """Lose a suffix of what was not forced: `keep` is the part of it that survives, a torn record after it."""
        unforced = len(self._frames) - self._durable
        kept = self._durable + round(keep * unforced)
        torn: list[bytes] = []
        if tear and kept < len(self._frames):
            whole = self._frames[kept]
            torn = [whole[: max(1, int(len(whole) * self._chance.random()))]]
        self._frames[kept:] = torn
        self._durable = len(self._frames)  # what is on the disk after a crash is there to stay
        self._gone = self._gone_bytes = 0
        self._life += 1

    def _over(self, life: int, durable: int, tell: Callable[[], None]) -> None:
        if life == self._life:
            self._durable = max(self._durable, durable - self._gone)
            tell()
