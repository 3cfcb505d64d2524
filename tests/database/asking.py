"""How tests ask a database: actions written as `s/4 append l1 7`, relaxed ones as `s~4 add c1 5`."""

from __future__ import annotations

import re
from typing import TypeVar

from greenline.database import snapshots
from greenline.database.memory import MemorySqlite
from greenline.kernel.actions import Action, Outcome, OutcomeOf, Read, digest_of, pack
from greenline.kernel.database import (
    Answer,
    Applied,
    Apply,
    Ask,
    Chunk,
    Commit,
    Compare,
    Digest,
    DigestOf,
    Lacks,
    Open,
    Opened,
    Query,
    Refused,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotHeld,
    Stage,
    System,
)

Kind = TypeVar("Kind", bound=Answer)


def action(text: str, received: int = 0, **reads: str) -> Action:
    """`reads`: what was read before, as `r1="r1 7"`."""
    found = re.fullmatch(r"(\S+?)([/~])(\d+) (.*)", text)
    assert found, text
    session, mark, number, body = found.groups()
    seen = tuple(Read(f"read {what}".encode(), digest_of(rows.encode())) for what, rows in reads.items())
    return Action(session, int(number), body.encode(), received, mark == "~", seen)


def chunk(*actions: str | Action) -> bytes:
    return pack(tuple(action(each) if isinstance(each, str) else each for each in actions))


def ask(kind: type[Kind], database: MemorySqlite, request: Ask) -> Kind:
    answer = database.answer(request)
    assert isinstance(answer, kind), answer
    return answer


def decide(database: MemorySqlite, *actions: str | Action, system: tuple[System, ...] = ()) -> tuple[Outcome, ...]:
    """Apply them as the next bundle."""
    applied = ask(Applied, database, Apply(database.position + 1, (chunk(*actions),), system))
    assert applied.position == database.position
    return applied.replies


def verdicts(database: MemorySqlite, *actions: str | Action, system: tuple[System, ...] = ()) -> str:
    """The same, as `done failed again`."""
    replies = decide(database, *actions, system=system)
    return " ".join("again" if reply.is_again else reply.verdict.value for reply in replies)


def apply(database: MemorySqlite, *operations: str) -> list[str]:
    """Apply these operations as the next bundle, in a session of their own; what they came to."""
    actions = [f"p{database.position + 1}/{number} {each}" for number, each in enumerate(operations, 1)]
    return [reply.value.decode() for reply in decide(database, *actions)]


def commit(database: MemorySqlite) -> None:
    """All that was applied."""
    database.answer(Commit(database.position))


def rows(database: MemorySqlite, request: str, is_dirty: bool = False) -> str:
    return ask(Rows, database, Query(request.encode(), is_dirty)).rows.decode()


def outcome_of(database: MemorySqlite, session: str, number: int, is_relaxed: bool = False) -> Outcome:
    outcome = ask(Rows, database, Query(OutcomeOf(session, number, is_relaxed))).outcome
    assert outcome is not None
    return outcome


def opened(database: MemorySqlite) -> Opened:
    return ask(Opened, database, Open())


def digest(database: MemorySqlite) -> bytes:
    return ask(Digest, database, DigestOf()).digest


def why_refused(database: MemorySqlite, request: Ask) -> str:
    return ask(Refused, database, request).reason


def hold(database: MemorySqlite) -> SnapshotHeld:
    return ask(SnapshotHeld, database, SnapshotBegin())


def chunks_of(database: MemorySqlite) -> dict[bytes, bytes]:
    """A snapshot of it, whole."""
    held = hold(database)
    return {
        digest: ask(Chunk, database, SnapshotChunk(held.position, number)).data
        for number, digest in enumerate(held.digests)
    }


def table(database: MemorySqlite, name: str) -> list[tuple[object, ...]]:
    """What is committed in a table, as a snapshot has it."""
    _, parts = snapshots.opened(chunks_of(database))
    return [row for part in parts if part.table == name for row in part.rows]


def send(source: MemorySqlite, target: MemorySqlite) -> tuple[SnapshotHeld, int]:
    """Stage what the target lacks; the snapshot that is held, and how many chunks had to travel."""
    held = hold(source)
    numbers = ask(Lacks, target, Compare(held.digests)).numbers
    for number in numbers:
        target.answer(Stage(ask(Chunk, source, SnapshotChunk(held.position, number)).data))
    return held, len(numbers)
