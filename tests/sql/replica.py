"""A script played to the adapter that every replica has, without a cluster around it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import apsw

from greenline.database.sqlite import tables
from greenline.database.sqlite.adapter import Sqlite
from greenline.database.sqlite.limits import Limits
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.database import Answer, Applied, Apply, Ask, Commit, Committed, Open, Opened, Overlay, Query, Rows
from greenline.kernel.statements import Failure, Question, Result, Statement, Work, encode, reply_of, results_of
from tests.sql.comparison import Played, Script, Then
from tests.sql.plain import Said, content_of

NOW = 1_700_000_000_000_000
PATIENT = Limits(transaction_seconds=3600)
"""Whoever waits for each answer must not be held up because a transaction is old: the commit comes only then."""
SESSIONS = ("alice", "bob", "carol")
Kind = TypeVar("Kind", bound=Answer)


class Replica:
    """Bundles are remembered, to be applied again when what they did was lost."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = Sqlite(directory, PATIENT)
        self._bundles: list[tuple[Apply, Applied]] = []
        self._numbers = dict.fromkeys(SESSIONS, 0)
        self._waiting: list[tuple[int, Action]] = []
        """Actions that are not applied so far, and their places in the script."""
        self._said: dict[int, Said] = {}

    def play(self, script: Script) -> list[Said]:
        for place, step in enumerate(script):
            if step.then in (Then.ASK, Then.ASK_DIRTY):
                self._said[place] = self._asked(step.action, step.then is Then.ASK_DIRTY)
                continue
            self._waiting.append((place, self._action(step.action)))
            if step.then is not Then.GO_ON:
                self._apply()
            if step.then in (Then.COMMIT, Then.RESTART):
                self._commit()
            if step.then in (Then.RESTART, Then.LOSE):
                self._begin_again()
        self._apply()
        self._commit()
        self._database.close()
        return [self._said[place] for place in range(len(script))]

    def _action(self, statements: tuple[Statement, ...]) -> Action:
        session = SESSIONS[sum(self._numbers.values()) % len(SESSIONS)]
        self._numbers[session] = number = self._numbers[session] + 1
        return Action(session, number, encode(Work(NOW, 7, statements)), number - 1)

    def _packed(self) -> bytes:
        return pack(tuple(action for _, action in self._waiting))

    def _apply(self) -> None:
        request = Apply(len(self._bundles) + 1, (self._packed(),))
        applied = self._ask(Applied, request)
        self._bundles.append((request, applied))
        self._said |= {place: said(reply) for (place, _), reply in zip(self._waiting, applied.replies, strict=True)}
        self._waiting.clear()

    def _commit(self) -> None:
        self._ask(Committed, Commit(len(self._bundles)))

    def _asked(self, query: tuple[Statement, ...], is_dirty: bool) -> Said:
        """It sees what was applied, or also what waits; a query waits for a commit, so that there must be one."""
        if not is_dirty:
            self._apply()
        self._commit()
        if is_dirty:
            self._ask(Opened, Overlay(((self._packed(),),)))
        (statement,) = query
        reply = reply_of(self._ask(Rows, Query(encode(Question(NOW, 7, statement)), is_dirty)).rows)
        assert isinstance(reply, Result | Failure), reply
        return reply if isinstance(reply, Failure) else (reply,)

    def _begin_again(self) -> None:
        self._database.close()
        self._database = Sqlite(self._directory, PATIENT)
        stands = self._ask(Opened, Open()).position
        for request, before in self._bundles[stands:]:
            again = self._ask(Applied, request)
            assert again == before, f"bundle {request.position} came to {before}, and after a restart to {again}"

    def _ask(self, kind: type[Kind], request: Ask) -> Kind:
        answer = self._database.answer(request)
        assert isinstance(answer, kind), answer
        return answer


def said(outcome: Outcome) -> Said:
    if outcome.verdict is Verdict.DONE:
        return results_of(outcome.value)
    assert outcome.verdict is Verdict.FAILED, outcome
    reply = reply_of(outcome.value)
    assert isinstance(reply, Failure), reply
    return reply


def through_a_replica(script: Script) -> Played:
    with TemporaryDirectory() as directory:
        heard = Replica(Path(directory)).play(script)
        db = apsw.Connection(str(Path(directory) / tables.FILE))
        content = content_of(db)
        db.close()
    return heard, content
