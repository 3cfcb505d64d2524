"""The audit beside a live cluster: the traces of its nodes as they grow, judged again and again.

A trace that still grows is cut at another moment at every node: a message may be delivered in one file before another
file has it sent. What is written by then is there at the next reading. So a violation counts if two readings after
each other find the same row; what the cut alone has made is gone in the second. What rules say of quiet runs they
do not say here, since a run that goes on has no end.

Each round judges all that there is, because a rule may need all of a run: its time grows with the trace, and nothing
else does. A node's trace that is kept for long is better begun anew from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from greenline.pipeline.audit import NothingToJudge, opened
from greenline.pipeline.verdicts import Verdicts
from greenline.spec.judge import Broken

PERIOD_S = 15.0
"""From the beginning of one round to that of the next, if it is done by then: two of them are within a minute."""


@dataclass(frozen=True)
class Round:
    verdicts: Verdicts
    confirmed: list[Broken]
    """What this reading and the one before it found, and none before told."""


def follow(
    place: Path,
    *,
    rules: Sequence[str] = (),
    engine: str = "auto",
    master: str | None = None,
    memory: str = "3g",
    work: Path | None = None,
    period_s: float = PERIOD_S,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Round]:
    """Round after round, for as long as somebody asks for the next."""
    before: set[str] = set()
    told: set[str] = set()
    while True:
        begun = time.monotonic()
        try:
            with opened(place, engine=engine, master=master, memory=memory, work=work) as audit:
                verdicts = audit.judge(rules)
        except NothingToJudge:
            wait(period_s)
            continue
        found = {_key(each): each for verdict in verdicts.broken for each in verdict.broken}
        confirmed = {key: each for key, each in found.items() if key in before and key not in told}
        told.update(confirmed)
        before = set(found)
        yield Round(verdicts, list(confirmed.values()))
        wait(max(0.0, period_s - (time.monotonic() - begun)))


def _key(broken: Broken) -> str:
    """Which violation it is. Not its because, which may count: it would be another one each time."""
    return repr((broken.rule, broken.run, sorted(broken.witness.items())))
