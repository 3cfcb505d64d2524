"""The audit beside a live cluster: the traces of its nodes as they grow, judged again and again.

A trace that still grows is cut at another moment at every node: a message may be delivered in one file before another
file has it sent. What is written by then is there at the next reading. So a violation counts if two readings after
each other find the same row; what the cut alone has made is gone in the second. What rules say of quiet runs they
do not say here, since a run that goes on has no end. A file that somebody just begins to write is read the next time.

Each round judges all that there is, because a rule may need all of a run: its time grows with the trace, and nothing
else does. A node's trace that is kept for long is better begun anew from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from greenline.pipeline.audit import WITNESSES, NoSpark, NothingToJudge, Unreadable, opened
from greenline.pipeline.report_trace import Select
from greenline.pipeline.verdicts import Verdicts
from greenline.spec.judge import Broken
from greenline.trace.stream import NotATrace
from greenline.trace.tables import Report, nobody

SURE = 100_000
"""Violations of a rule that are compared with those of the reading before: what the cut has made may be many."""
PERIOD_S = 15.0
"""From the beginning of one round to that of the next, if it is done by then: two of them are within a minute."""


Keep = Callable[[Verdicts, datetime, Select], None]
"""Is given what a reading came to, when that was begun, and whom to ask of the trace."""


@dataclass(frozen=True)
class Round:
    verdicts: Verdicts
    """What this reading and the one before it found."""
    confirmed: list[Broken]
    """Of that, what none before told."""


def _kept_by_nobody(*_: object) -> None:
    """Whoever wants no table and no report."""


def follow(
    place: Path,
    *,
    rules: Sequence[str] = (),
    engine: str = "auto",
    master: str | None = None,
    memory: str = "3g",
    work: Path | None = None,
    keep: Keep = _kept_by_nobody,
    report: Report = nobody,
    period_s: float = PERIOD_S,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Round]:
    """Round after round, for as long as somebody asks for the next.

    What cannot be read is raised by the first one (`NotATrace`, `Unreadable`); later `report` hears of it, and it is
    read again: it is just written, or was just taken away, or there was no room. The first round has found nothing
    yet, since nobody has found it before; from the second on `keep` is given what is sure.
    """
    before: set[str] | None = None
    told: set[str] = set()
    is_empty = False
    while True:
        begun = time.monotonic()
        try:
            with opened(place, engine=engine, master=master, memory=memory, work=work) as audit:
                now = datetime.now(UTC)
                found = audit.judge(rules, most=SURE)
                keys = {_key(each) for verdict in found.broken for each in verdict.broken}
                known = before or set()
                sure = found.only(lambda each: _key(each) in known)  # noqa: B023  (asked at once)
                if before is not None:
                    keep(sure.at_most(WITNESSES), now, audit.select)
        except NothingToJudge as reason:
            if not is_empty:
                report(f"{reason} yet")
            is_empty = True
        except (NotATrace, Unreadable, NoSpark, OSError) as error:
            if before is None:
                raise
            report(f"{error}; it is read again")
        else:
            before, is_empty = keys, False
            confirmed = {_key(each): each for verdict in sure.broken for each in verdict.broken}
            yield Round(sure, [each for key, each in confirmed.items() if key not in told])
            told.update(confirmed)
        wait(max(0.0, period_s - (time.monotonic() - begun)))


def _key(broken: Broken) -> str:
    """Which violation it is. Not its because, which may count: it would be another one each time."""
    return repr((broken.rule, broken.run, sorted(broken.witness.items())))
