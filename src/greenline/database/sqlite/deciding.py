"""Deciding: the actions of one bundle, in order: whose turn it is, what to execute together, what each comes to."""

from __future__ import annotations

import msgspec

from greenline.database.sqlite import runs
from greenline.database.sqlite.connection import OURS
from greenline.database.sqlite.failures import GARBLED, NOT_RELAXED
from greenline.database.sqlite.limits import Limits
from greenline.database.sqlite.runs import MOST, Task, is_known_to_run
from greenline.database.sqlite.sessions import Known, Sessions
from greenline.database.sqlite.statements import Came, Executor, Vanished
from greenline.kernel.actions import Action, Outcome, Read, Verdict, digest_of
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import (
    Body,
    Conflict,
    Failure,
    Member,
    Question,
    Result,
    Role,
    Work,
    encode,
    request_of,
)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)
"""What is raised for bytes that are no body."""

Place = tuple[int, int]
"""The position of a bundle, and which of its actions."""

_DROP_USER = "DELETE FROM greenline_users WHERE name = ?"
_PUT_USER = "INSERT OR REPLACE INTO greenline_users VALUES (?, ?, ?)"
_PUT_MEMBER = "INSERT OR REPLACE INTO greenline_members VALUES (?, ?, ?, ?)"


class Deciding:
    def __init__(
        self,
        executor: Executor,
        sessions: Sessions,
        fates: dict[Place, Failure | None],
        limits: Limits,
        position: int,
    ) -> None:
        self._executor = executor
        self._sessions = sessions
        self._fates = fates
        self._kept_bytes = limits.kept_bytes
        self._position = position
        self._replies: list[Outcome] = []
        self._tasks: list[Task] = []
        """To be executed together."""

    def decide(self, actions: list[Action | None]) -> tuple[Outcome, ...]:
        position, replies, tasks = self._position, self._replies, self._tasks
        hear, decode, executor, fates = self._sessions.hear, _BODIES.decode, self._executor, self._fates
        running: str | None = None
        for sub, action in enumerate(actions):
            if action is None:
                replies.append(Outcome(Verdict.FAILED, _GARBLED, position, sub))
                continue
            if action.is_relaxed:
                replies.append(self._relaxed(action, sub))
                continue
            session = hear(action, position)
            if session is None:
                self._execute()
                session = hear(action, position)
            if type(session) is not Known:
                assert type(session) is Outcome, "asked again, and still not known"
                replies.append(session)
                continue
            replies.append(_LATER)
            try:
                body = decode(action.body)
            except UNREADABLE:
                self._finish(sub, session, action.number, GARBLED)
                continue
            if (
                type(body) is Work
                and len(body.statements) == 1
                and ((statement := body.statements[0]).sql == running or is_known_to_run(executor, statement.sql))
                and not (action.reads or statement.expected or type(statement.parameters) is dict)
                and (not fates or (position, sub) not in fates)
            ):
                running = statement.sql
                tasks.append((running, sub, action, body, session))
                if len(tasks) == MOST:
                    self._execute()
            else:
                self._execute()
                running = None  # the schema may be another one from here on
                self._finish(sub, session, action.number, self._one(sub, action, body))
        self._execute()
        return tuple(replies)

    def _relaxed(self, action: Action, sub: int) -> Outcome:
        told = self._sessions.hear_relaxed(action, self._position)
        return Outcome(Verdict.FAILED, _NOT_RELAXED, self._position, sub) if told is None else told

    def _execute(self) -> None:
        """Those that are to be executed together; one by one, if anything is wrong with any."""
        if not self._tasks:
            return
        outcomes = runs.run(self._executor, self._tasks, self._position)
        if outcomes is None:
            for _, sub, action, work, session in self._tasks:
                self._finish(sub, session, action.number, self._one(sub, action, work))
        else:
            for (_, sub, action, _, session), outcome in zip(self._tasks, outcomes, strict=True):
                self._replies[sub] = outcome
                session.keep(action.number, outcome, self._kept_bytes)
        self._tasks.clear()

    def _finish(self, sub: int, session: Known, number: int, came: Came) -> None:
        outcome = self._replies[sub] = Outcome(_verdict(came), encode(came), self._position, sub)
        session.keep(number, outcome, self._kept_bytes)

    def _one(self, sub: int, action: Action, body: Body) -> Came:
        place = self._position, sub
        fate = self._fates.get(place)
        if fate is not None:
            return fate
        if not isinstance(body, Work):
            return self._put(body)
        try:
            if any(not self._is_still_read(read) for read in action.reads):
                return Conflict(0)
            return self._executor.run(body, action.session, action.number, is_alone=place in self._fates)
        except Garbled:
            return GARBLED
        except Vanished as vanished:
            vanished.sub = sub
            raise

    def _is_still_read(self, read: Read) -> bool:
        """Does what was asked still come to what was told?"""
        question = request_of(read.request)
        if not isinstance(question, Question):
            return False
        execute = self._executor.connection.execute
        execute("SAVEPOINT read", prepare_flags=OURS)
        came = self._executor.run(Work(question.now, question.seed, (question.statement,)), is_alone=True)
        execute("ROLLBACK TO read", prepare_flags=OURS)
        execute("RELEASE read", prepare_flags=OURS)
        return digest_of(encode(came[0] if isinstance(came, tuple) else came)) == read.digest

    def _put(self, body: Role | Member) -> Came:
        execute = self._executor.connection.execute
        if isinstance(body, Member):
            execute(_PUT_MEMBER, (body.name, body.address, body.admin, body.clients), prepare_flags=OURS)
        elif body.verifier:
            execute(_PUT_USER, (body.user, body.role, body.verifier), prepare_flags=OURS)
        else:
            execute(_DROP_USER, (body.user,), prepare_flags=OURS)
        return (Result(self._executor.connection.changes()),)


def _verdict(came: Came) -> Verdict:
    if isinstance(came, tuple):
        return Verdict.DONE
    return Verdict.FAILED if isinstance(came, Failure) else Verdict.CONFLICT


_LATER = Outcome(Verdict.UNKNOWN)
"""In the place of what is not known yet."""
_GARBLED = encode(GARBLED)
_NOT_RELAXED = encode(NOT_RELAXED)
_BODIES: msgspec.msgpack.Decoder[Body] = msgspec.msgpack.Decoder(Body)
