"""A story: a run in words, one event a line, with who, in which phase, in which configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from greenline.kernel import evidence
from greenline.kernel.evidence import Row

JOINED = frozenset({evidence.GENERATE, evidence.SEND, evidence.DELIVER, evidence.BUSY})
"""Kinds of which several in a row, of one process, are told in one line."""
ASIDE = frozenset({evidence.IGNORED, evidence.PACKET, evidence.SEND})
"""Kinds that are told only when everything is."""
MOST_NAMED = 4


@dataclass(frozen=True)
class Line:
    number: int
    process: str
    phase: str
    conf: str
    text: str
    rows: tuple[Row, ...] = field(repr=False)

    def __str__(self) -> str:
        conf = f"{self.conf:<8} " if self.conf else ""
        return f"{self.number:04}  {self.process:<4} {self.phase:<11} {conf}{self.text}".rstrip()


def tell(rows: Iterable[Row], everything: bool = False) -> Iterator[Line]:
    """The lines of a story. `number` counts all rows, so a line keeps its number however much is told."""
    phases: dict[tuple[str, str | None], str] = {}
    pending: list[Row] = []
    first = 0
    for number, row in enumerate(rows):
        if row.kind in ASIDE and not everything:
            continue
        if pending and not _belongs(row, pending[-1]):
            yield _line(first, pending, phases)
            pending = []
        if not pending:
            first = number
        pending.append(row)
    if pending:
        yield _line(first, pending, phases)


def _belongs(row: Row, before: Row) -> bool:
    return (
        row.kind in JOINED
        and (row.kind, row.process, row.incarnation) == (before.kind, before.process, before.incarnation)
        and (row.conf, row.service) == (before.conf, before.service)
    )


def _line(number: int, rows: list[Row], phases: dict[tuple[str, str | None], str]) -> Line:
    row = rows[0]
    text = _words(rows, phases)
    if row.kind == evidence.PHASE:
        phases[row.process, row.layer] = row.detail or ""
    elif row.kind in (evidence.START, evidence.CRASH, evidence.HALT):
        for key in [key for key in phases if key[0] == row.process]:
            del phases[key]
    return Line(number, row.process, phases.get((row.process, row.layer), ""), row.conf or "", text, tuple(rows))


def _words(rows: list[Row], phases: dict[tuple[str, str | None], str]) -> str:
    row = rows[0]
    named = _named([each.message or "" for each in rows])
    service = f", {row.service}" if row.service else ""
    match row.kind:
        case evidence.START:
            return f"starts its life {row.incarnation}"
        case evidence.GENERATE:
            return f"multicasts {named}{service}"
        case evidence.BUSY:
            return f"is too busy to take {named}"
        case evidence.SEND:
            return f"sent {named}"
        case evidence.DELIVER:
            return f"delivers {named}{service}"
        case evidence.REGULAR:
            return f"installs {row.conf} {{{row.members}}}"
        case evidence.TRANSITIONAL:
            return f"enters the transitional configuration {{{row.members}}}"
        case evidence.CRASH:
            return "crashes"
        case evidence.HALT:
            return f"halts: {row.detail}"
        case evidence.PHASE:
            before = phases.get((row.process, row.layer))
            return f"{before} -> {row.detail}" if before else f"begins as {row.detail}"
        case evidence.QUIET:
            return f"quiet: {row.detail}" if row.detail else "quiet"
        case evidence.STUCK:
            return f"stuck: {row.detail}" if row.detail else "stuck"
        case evidence.FAULT | evidence.HEALED | evidence.PACKET:
            return row.detail or ""
        case _:
            about = " ".join(filter(None, (row.message, row.colour, _place(row), row.members, row.detail)))
            return f"{row.kind} {about}".rstrip()


def _place(row: Row) -> str | None:
    if row.position is None:
        return None
    return f"at {row.position}" if row.sub is None else f"at {row.position}.{row.sub}"


def _named(messages: list[str]) -> str:
    if len(messages) <= MOST_NAMED:
        return " ".join(messages)
    return f"{' '.join(messages[: MOST_NAMED - 1])} and {len(messages) - MOST_NAMED + 1} more"
