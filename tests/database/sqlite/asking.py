"""How tests ask the product's database: SQL in, results out, each bundle committed unless it is said otherwise."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.database import (
    Applied,
    Apply,
    Commit,
    Committed,
    Digest,
    DigestOf,
    Open,
    Opened,
    Query,
    Rows,
    System,
)
from greenline.kernel.statements import (
    Body,
    Failure,
    Question,
    Reply,
    Result,
    Statement,
    Trial,
    Work,
    encode,
    reply_of,
    results_of,
)

NOW = 1_700_000_000_123_456
"""The 14th of November 2023, 22:13:20.123 in UTC."""
PATIENT = Limits(transaction_seconds=3600)
"""Who waits for each answer asks for the commit only then."""


def work(*statements: str | Statement, now: int = NOW, seed: int = 7) -> Work:
    return Work(now, seed, tuple(each if isinstance(each, Statement) else Statement(each) for each in statements))


class Database:
    """One replica's; actions are of the session `s` unless they are given whole."""

    def __init__(self, directory: Path, limits: Limits = PATIENT, base: str = "") -> None:
        self.sqlite = Sqlite(directory, limits, base)
        self.number = self._number()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.sqlite.close()

    def apply(self, *actions: Action, system: tuple[System, ...] = ()) -> tuple[Outcome, ...]:
        """As the next bundle, which stays open."""
        applied = self.sqlite.answer(Apply(self.sqlite.position + 1, (pack(actions),), system))
        assert isinstance(applied, Applied), applied
        return applied.replies

    def commit(self) -> None:
        committed = self.sqlite.answer(Commit(self.sqlite.position))
        assert isinstance(committed, Committed), committed

    def next(self, *statements: str | Statement, body: Body | None = None) -> Action:
        """The next action of the session."""
        self.number += 1
        return Action("s", self.number, encode(body or work(*statements)), self.number - 1)

    def decide(self, *actions: Action, system: tuple[System, ...] = ()) -> list[tuple[Result, ...] | Reply]:
        """As the next bundle, committed: what each came to."""
        outcomes = self.apply(*actions, system=system)
        self.commit()
        return [came_to(outcome) for outcome in outcomes]

    def run(self, *statements: str | Statement) -> tuple[Result, ...] | Reply:
        (came,) = self.decide(self.next(*statements))
        return came

    def done(self, *statements: str | Statement) -> tuple[Result, ...]:
        came = self.run(*statements)
        assert isinstance(came, tuple), came
        return came

    def fails(self, *statements: str | Statement) -> Failure:
        came = self.run(*statements)
        assert isinstance(came, Failure), came
        return came

    def ask(self, sql: str, *parameters: object) -> Reply:
        return self._replied(Question(NOW, 7, Statement(sql, parameters)))

    def try_out(self, *statements: str | Statement) -> Reply:
        return self._replied(Trial(work(*statements)))

    def rows(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        reply = self.ask(sql, *parameters)
        assert isinstance(reply, Result), reply
        return list(reply.rows)

    def opened(self) -> Opened:
        opened = self.sqlite.answer(Open())
        assert isinstance(opened, Opened), opened
        return opened

    def digest(self) -> bytes:
        digest = self.sqlite.answer(DigestOf())
        assert isinstance(digest, Digest), digest
        return digest.digest

    def _replied(self, request: Question | Trial) -> Reply:
        answer = self.sqlite.answer(Query(encode(request)))
        assert isinstance(answer, Rows), answer
        return reply_of(answer.rows)

    def _number(self) -> int:
        known = self.rows("SELECT last FROM greenline_sessions WHERE name = 's'")
        return int(str(known[0][0])) if known else 0


def came_to(outcome: Outcome) -> tuple[Result, ...] | Reply:
    return results_of(outcome.value) if outcome.verdict is Verdict.DONE else reply_of(outcome.value)
