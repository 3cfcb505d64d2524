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
from greenline.kernel.actions import Action, Outcome, Read, Series, Verdict, declared, digest_of, open_packed
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import (
    NOT_SAID,
    Body,
    Conflict,
    Failure,
    Member,
    Parameters,
    Question,
    Result,
    Role,
    Statement,
    Value,
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

    def decide(self, chunks: tuple[bytes, ...]) -> tuple[Outcome, ...]:
        """What each action of a bundle comes to. Of a chunk that cannot be opened, all have failed."""
        for chunk in chunks:
            try:
                packed = open_packed(chunk)
            except Garbled:
                first = len(self._replies)
                subs = range(first, first + declared(chunk))
                self._replies += [Outcome(Verdict.FAILED, _GARBLED, self._position, sub) for sub in subs]
                continue
            if not isinstance(packed, Series):
                self._decide_each(packed)
            elif not self._decide_series(packed):
                self._decide_each(packed.actions)
        self._execute()
        return tuple(self._replies)

    def _decide_series(self, series: Series) -> bool:
        """The next requests of a session, all with the same text. False: nothing is done."""
        self._execute()
        session = None if self._fates else self._sessions.is_next(series)
        if session is None or series.received >= series.first:
            return False
        work = _common_work(series)
        if work is None or not is_known_to_run(self._executor, work.statements[0].sql):
            return False
        rows = _rows_of(series, work)
        if rows is None:
            return False
        position, sub = self._position, len(self._replies)
        values = runs.run_series(self._executor, series, work, rows, sub)
        if values is None:
            return False
        outcomes = [Outcome(Verdict.DONE, value, position, place) for place, value in enumerate(values, sub)]
        self._sessions.hear_all(session, series.received, len(rows), position)
        session.keep_all(outcomes)
        self._replies += outcomes
        return True

    def _decide_each(self, actions: tuple[Action, ...]) -> None:
        position, replies, tasks = self._position, self._replies, self._tasks
        hear, decode, executor, fates = self._sessions.hear, _BODIES.decode, self._executor, self._fates
        running: str | None = None
        for sub, action in enumerate(actions, len(replies)):
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
                self._execute()
                self._finish(sub, session, GARBLED)
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
                self._finish(sub, session, self._one(sub, action, body))

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
                self._finish(sub, session, self._one(sub, action, work))
        else:
            for (_, sub, _, _, session), outcome in zip(self._tasks, outcomes, strict=True):
                self._replies[sub] = outcome
                session.keep(outcome, self._kept_bytes)
        self._tasks.clear()

    def _finish(self, sub: int, session: Known, came: Came) -> None:
        outcome = self._replies[sub] = Outcome(_verdict(came), encode(came), self._position, sub)
        session.keep(outcome, self._kept_bytes)

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


def _common_work(series: Series) -> Work | None:
    """What its first action does, if it is one statement that expects nothing."""
    try:
        body = _BODIES.decode(series.head + series.tails[0])
    except UNREADABLE:
        return None
    is_one = type(body) is Work and len(body.statements) == 1 and not body.statements[0].expected
    return body if is_one else None  # type: ignore[return-value]  # it is Work


def _rows_of(series: Series, work: Work) -> list[Parameters] | None:
    """The parameters of each, if all else that they say is what `work` says: then it is in what they have in common."""
    before = encode(Work(work.now, work.seed, (Statement(work.statements[0].sql),)))[: -len(_NO_PARAMETERS)]
    if not series.head.startswith(before):
        return None
    common, end = series.head[len(before) :], -len(_NOTHING_EXPECTED)
    bodies = [common + tail for tail in series.tails]
    if {body[end:] for body in bodies} != {_NOTHING_EXPECTED}:
        return None
    decode = _PARAMETERS.decode
    try:
        return [decode(body[:end]) for body in bodies]
    except UNREADABLE:
        return None


def _verdict(came: Came) -> Verdict:
    if isinstance(came, tuple):
        return Verdict.DONE
    return Verdict.FAILED if isinstance(came, Failure) else Verdict.CONFLICT


_LATER = Outcome(Verdict.UNKNOWN)
"""In the place of what is not known yet."""
_GARBLED = encode(GARBLED)
_NOT_RELAXED = encode(NOT_RELAXED)
_BODIES: msgspec.msgpack.Decoder[Body] = msgspec.msgpack.Decoder(Body)
_PARAMETERS: msgspec.msgpack.Decoder[tuple[Value, ...]] = msgspec.msgpack.Decoder(tuple[Value, ...])
_NOTHING_EXPECTED = encode(NOT_SAID)
_NO_PARAMETERS = encode(()) + _NOTHING_EXPECTED
assert encode(Statement("")).endswith(_NO_PARAMETERS), "statements are encoded otherwise"
