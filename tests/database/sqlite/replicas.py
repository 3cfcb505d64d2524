"""A replica's database for tests: SQL in, answers out, and what became of its log."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TypeVar

from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, pack
from greenline.kernel.database import (
    Answer,
    Applied,
    Apply,
    Ask,
    Chunk,
    Commit,
    Committed,
    Compare,
    Digest,
    DigestOf,
    Lacks,
    Opened,
    Query,
    Refused,
    Restore,
    Rows,
    SnapshotBegin,
    SnapshotChunk,
    SnapshotHeld,
    Stage,
    Staged,
)
from greenline.kernel.statements import Parameters, Question, Reply, Result, Statement, Work, encode, reply_of

Kind = TypeVar("Kind", bound=Answer)

ENDLESS = "WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
"""It runs until it is stopped."""


def action(session: str, number: int, sql: str, *parameters: object) -> Action:
    return Action(session, number, encode(Work(0, 1, (Statement(sql, parameters),))))


def bundle(*actions: Action) -> tuple[bytes, ...]:
    return (pack(actions),)


def question(sql: str, parameters: Parameters = ()) -> bytes:
    return encode(Question(0, 1, Statement(sql, parameters)))


class Replica:
    def __init__(self, directory: Path, limits: Limits = Limits()) -> None:  # noqa: B008
        self.directory = directory
        self.database = Sqlite(directory, limits)

    def __enter__(self) -> Replica:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.database.close()

    def ask(self, kind: type[Kind], request: Ask) -> Kind:
        answer = self.database.answer(request)
        assert isinstance(answer, kind), answer
        return answer

    def why_refused(self, request: Ask) -> str:
        return self.ask(Refused, request).reason

    def apply(self, *actions: Action) -> Applied:
        return self.ask(Applied, Apply(self.database.position + 1, bundle(*actions)))

    def commit(self) -> Committed:
        return self.ask(Committed, Commit(self.database.position))

    def execute(self, sql: str, *parameters: object) -> None:
        """As a bundle of its own, of a session of its own; and commit it."""
        (outcome,) = self.apply(action(f"c{self.database.position}", 1, sql, *parameters)).replies
        assert outcome.verdict == "done", outcome
        self.commit()

    def reply(self, sql: str, is_dirty: bool = False) -> Reply:
        return reply_of(self.ask(Rows, Query(question(sql), is_dirty)).rows)

    def rows(self, sql: str, is_dirty: bool = False) -> list[tuple[object, ...]]:
        reply = self.reply(sql, is_dirty)
        assert isinstance(reply, Result), reply
        return list(reply.rows)

    def digest(self) -> Digest:
        return self.ask(Digest, DigestOf())

    @property
    def log_bytes(self) -> int:
        return (self.directory / "greenline.db-wal").stat().st_size

    # Snapshots.

    def hold(self) -> SnapshotHeld:
        return self.ask(SnapshotHeld, SnapshotBegin())

    def chunk(self, held: SnapshotHeld, number: int) -> bytes:
        return self.ask(Chunk, SnapshotChunk(held.position, number)).data

    def lacks(self, held: SnapshotHeld) -> tuple[int, ...]:
        return self.ask(Lacks, Compare(held.digests)).numbers

    def stage(self, data: bytes) -> bytes:
        return self.ask(Staged, Stage(data)).digest

    def fetch(self, source: Replica, held: SnapshotHeld) -> int:
        """Stage what is lacking; how much travelled, in bytes."""
        chunks = [source.chunk(held, number) for number in self.lacks(held)]
        for data in chunks:
            self.stage(data)
        return sum(map(len, chunks))

    def restore(self, held: SnapshotHeld, basis: bytes = b"") -> Opened:
        return self.ask(Opened, Restore(held.position, held.digests, basis))


def write_until_the_log_begins_anew(replica: Replica, most: int = 20_000) -> int:
    """To the table `notes`; how much was written, or 0 if it never did."""
    path = replica.directory / "greenline.db-wal"
    before = _beginning(path)
    for n in range(1, most):
        replica.execute("INSERT INTO notes VALUES (?)", n)
        if _beginning(path) != before:
            return n
    return 0


def _beginning(path: Path) -> bytes:
    """The log's header has other salts each time."""
    with path.open("rb") as file:
        return file.read(32)
