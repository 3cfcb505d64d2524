"""A process that counts, on disk, until it is killed: `python -m tests.node.tallying DIRECTORY [WHEN]`.

It has a router and a real log, and no network. Each number is printed when it is durable, and every fourth is a
checkpoint. With WHEN it kills itself, when that is about to happen for the third time.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from greenline.kernel.orders import Discard, Force, Order, Stop, Tell, Write
from greenline.kernel.router import Router
from greenline.node.log import DiskFailed, Log
from tests.kernel.tally import Latest, Tally, latest_layer, tally_layer

SEGMENT_BYTES = 4096
BALLAST = b"x" * 300


class Counting:
    """The smallest driver that there is."""

    def __init__(self, directory: Path) -> None:
        self.tally, self.latest = Tally(every=4, ballast=BALLAST), Latest()
        self.router = Router("p", ["p"], [tally_layer(self.tally), latest_layer(self.latest)])
        self.log = Log(directory, segment_bytes=SEGMENT_BYTES)
        self._inputs: queue.Queue[tuple[int, DiskFailed | None]] = queue.Queue()
        self.durable = 0
        self.is_at_work = False
        self._carry_out(self.router.boot(0.0, self.log.contents()))
        self._wait()

    def count(self) -> None:
        """One more, until it is durable."""
        self._carry_out(self.router.ask(0.0, "count"))
        self._wait()

    def close(self) -> None:
        self.log.close()

    def _wait(self) -> None:
        while self.is_at_work:
            number, failure = self._inputs.get(timeout=10.0)
            assert failure is None, failure
            self.is_at_work = False
            self._carry_out(self.router.forced(0.0, number))

    def _carry_out(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Write(frame):
                    self.log.write(frame)
                case Force(number):
                    self.is_at_work = True
                    self.log.force(lambda failure, number=number: self._inputs.put((number, failure)))  # type: ignore[misc]
                case Discard(before):
                    self.log.discard(before, lambda failure: self._inputs.put((0, failure)))
                case Tell(("counted", number)):
                    self.durable = number
                case Stop(reason):
                    raise AssertionError(reason)


def dies(whom: Any, name: str, *, after: bool = False) -> None:
    """The third time that this is called, the process is killed instead, or when it has done it."""
    real: Callable[..., Any] = getattr(whom, name)
    calls = 0

    def called(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls < 3 or after:
            real(*args)
        if calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(whom, name, called)


def main(directory: str, when: str | None = None) -> None:
    counting = Counting(Path(directory))
    match when:
        case "before it deletes anything":
            dies(Log, "_discard")
        case "before a segment is deleted":
            dies(Path, "unlink")
        case "before a segment is gone for good":
            dies(Path, "unlink", after=True)
    say("began", counting.tally.number)
    while True:
        counting.count()
        say("counted", counting.durable)


def say(what: str, number: int) -> None:
    os.write(1, f"{what} {number}\n".encode())  # the whole line or nothing: the other thread may kill us here


if __name__ == "__main__":
    main(*sys.argv[1:])
