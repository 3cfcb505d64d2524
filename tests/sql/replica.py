"""A script played to the adapter that every replica has, without a cluster around it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import apsw
from greenline.database.sqlite.adapter import Sqlite

from greenline.database.sqlite import tables
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.database import Answer, Applied, Apply, Ask, Commit, Committed, Open, Opened
from greenline.kernel.statements import Failure, Statement, Work, encode, reply_of, results_of
from tests.sql.comparison import Played, Script, Then
from tests.sql.plain import Said, content_of

NOW = 1_700_000_000_000_000
SESSIONS = ("alice", "bob", "carol")
Kind = TypeVar("Kind", bound=Answer)


class Replica:
    """Bundles are remembered, to be applied again when what they did was lost."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = Sqlite(directory)
        self._bundles: list[tuple[Apply, Applied]] = []
        self._numbers = dict.fromkeys(SESSIONS, 0)
        self._waiting: list[Action] = []

    def play(self, script: Script) -> list[Said]:
        for step in script:
            self._waiting.append(self._action(step.action))
            if step.then is not Then.GO_ON:
                self._apply()
            if step.then in (Then.COMMIT, Then.RESTART):
                self._commit()
            if step.then in (Then.RESTART, Then.LOSE):
                self._begin_again()
        self._apply()
        self._commit()
        self._database.close()
        return [said(reply) for _, applied in self._bundles for reply in applied.replies]

    def _action(self, statements: tuple[Statement, ...]) -> Action:
        session = SESSIONS[sum(self._numbers.values()) % len(SESSIONS)]
        self._numbers[session] = number = self._numbers[session] + 1
        return Action(session, number, encode(Work(NOW, 7, statements)), number - 1)

    def _apply(self) -> None:
        request = Apply(len(self._bundles) + 1, (pack(tuple(self._waiting)),))
        self._bundles.append((request, self._ask(Applied, request)))
        self._waiting.clear()

    def _commit(self) -> None:
        self._ask(Committed, Commit(len(self._bundles)))

    def _begin_again(self) -> None:
        self._database.close()
        self._database = Sqlite(self._directory)
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
