"""A desk that answers at once, from a database of its own: what the edge needs of a node, without the cluster."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from greenline.access import wire
from greenline.kernel.actions import Outcome, OutcomeOf, Verdict, unpack
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import (
    Failure,
    Inquiry,
    Look,
    Question,
    Reply,
    Result,
    Role,
    Statement,
    Trial,
    Value,
    Work,
    body_of,
    encode,
    request_of,
)
from greenline.node.edge import Discarded, Listener
from greenline.replication import port
from greenline.replication.port import (
    Accepted,
    Answer,
    BundleId,
    Change,
    Forced,
    Level,
    Reads,
    Replied,
    Unanswered,
    Where,
)

TABLES = """
CREATE TABLE greenline_users (name TEXT PRIMARY KEY, role TEXT, verifier TEXT);
CREATE TABLE greenline_members (name TEXT PRIMARY KEY, address TEXT, admin TEXT, clients TEXT);
INSERT INTO greenline_members VALUES ('p', '', '', '10.0.0.1:7600'), ('q', '', '', '');
CREATE TABLE t (id INTEGER PRIMARY KEY, text UNIQUE);
"""


class StubDesk:
    """Every bundle is green at once, unless it is told to keep the answers back."""

    def __init__(self) -> None:
        self.clients: dict[str, str] = {}
        self.where = Where("p", True, 1, ("p", "q"))
        self.is_open = True
        self.why_closed = ""
        self.ending_before: int | None = None
        self.low = 1
        self.log: list[wire.Bundle] = []
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.changes: list[Change] = []
        self.forgotten: list[int] = []
        self.looked_up: list[str] = []
        self.reads_of_log: list[int] = []
        """Where each began."""
        self.held: list[Callable[[], None]] | None = None
        """Answers that are kept back; None: none are."""
        self.refusal: port.Refused | Unanswered | None = None
        """What it says to everything instead."""
        self.rows: bytes | None = None
        """What it says to every query instead."""
        self._callbacks: list[Callable[[], None]] = []
        self._tickets = 0
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.executescript(TABLES)

    @property
    def durable_green(self) -> int:
        return len(self.log)

    def appoint(self, user: str, role: str, verifier: str) -> None:
        self._order((encode(Role(user, role, verifier)),), b"")

    # The desk.

    def submit(self, actions: bytes, count: int, level: Level, told: Listener, *, tell_taken: bool) -> int:
        ticket = self._ticket()
        if tell_taken:
            told(Accepted(ticket, BundleId("p", len(self.log) + 1), self.where))
        opened = unpack(actions)
        assert len(opened) == count
        outcomes = self._order(tuple(each.body for each in opened), actions)
        self.outcomes |= {(each.session, each.number): got for each, got in zip(opened, outcomes, strict=True)}
        self._say(told, Replied(ticket, len(self.log), 0, outcomes, level, self.where))
        return ticket

    def ask(self, request: bytes | OutcomeOf, reads: Reads, after: int, is_patient: bool, told: Listener) -> int:
        ticket = self._ticket()
        rows, outcome = b"", None
        if isinstance(request, OutcomeOf):
            outcome = self.outcomes.get((request.session, request.number), Outcome(Verdict.UNKNOWN))
        else:
            asked = request_of(request)
            assert not isinstance(asked, Inquiry), "only the node asks such"
            rows = self.rows or encode(self._look(asked) if isinstance(asked, Look) else self._asked(asked))
        self._say(told, Answer(ticket, rows, outcome, len(self.log), 0, reads, self.where))
        return ticket

    def reconfigure(self, change: Change, told: Listener) -> int:
        self.changes.append(change)
        ticket = self._ticket()
        self._say(told, Replied(ticket, 1, 0, (Outcome(Verdict.DONE),), Level.LOCAL, self.where))
        return ticket

    def force(self, survivors: tuple[str, ...], dead: tuple[str, ...], reason: str, told: Listener) -> int:
        ticket = self._ticket()
        self._say(told, Forced(ticket, 7))
        return ticket

    def forget(self, ticket: int) -> None:
        self.forgotten.append(ticket)

    def look_up(self, sql: str, parameters: tuple[Value, ...], told: Callable[[Reply], None]) -> None:
        self.looked_up.append(sql)
        told(self._run(Statement(sql, parameters)))

    def ordered(self, first: int, most_bytes: int) -> list[wire.Bundle]:
        self.reads_of_log.append(first)
        if first < self.low:
            raise Discarded(self.low)
        found: list[wire.Bundle] = []
        size = 0
        for bundle in self.log[first - 1 :]:
            size += len(msgspec.msgpack.encode(bundle))
            if found and size > most_bytes:
                break
            found.append(bundle)
        return found

    def order_digest(self, position: int) -> bytes:
        return b"order %d" % position

    def when_green(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def digests(self, told: Callable[[int, bytes, bytes], None]) -> None:
        told(len(self.log), b"order", b"state")

    # Inside.

    def release(self) -> None:
        held, self.held = self.held or [], None
        for answer in held:
            answer()

    def say_green(self) -> None:
        for callback in self._callbacks:
            callback()

    def _ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _say(self, told: Listener, answer: Replied | Answer | Forced) -> None:
        said = self.refusal or answer
        if self.held is None:
            told(said)
        else:
            self.held.append(lambda: told(said))

    def _order(self, bodies: tuple[bytes, ...], actions: bytes) -> tuple[Outcome, ...]:
        position = len(self.log) + 1
        self.log.append(wire.Bundle(position, BundleId("p", position), (actions,) if actions else ()))
        outcomes = tuple(self._outcome(body, position, sub) for sub, body in enumerate(bodies))
        self.say_green()
        return outcomes

    def _outcome(self, body: bytes, position: int, sub: int) -> Outcome:
        try:
            work = body_of(body)
        except Garbled as error:
            return Outcome(Verdict.FAILED, encode(Failure(0, "Garbled", str(error))), position, sub)
        if isinstance(work, Role):
            self._database.execute("DELETE FROM greenline_users WHERE name = ?", (work.user,))
            if work.verifier:
                row = (work.user, work.role, work.verifier)
                self._database.execute("INSERT INTO greenline_users VALUES (?, ?, ?)", row)
            return Outcome(Verdict.DONE, b"", position, sub)
        assert isinstance(work, Work)
        results: list[Result] = []
        for number, statement in enumerate(work.statements):
            got = self._run(statement)
            if not isinstance(got, Result):
                return Outcome(Verdict.FAILED, encode(msgspec.structs.replace(got, statement=number)), position, sub)
            results.append(got)
        return Outcome(Verdict.DONE, encode(tuple(results)), position, sub)

    def _asked(self, asked: Question | Trial) -> Result | Failure:
        statements = (asked.statement,) if isinstance(asked, Question) else asked.work.statements
        return [self._run(each) for each in statements][-1]

    def _look(self, asked: Look) -> Result | Failure:
        """Its program opens a transaction that writes, or does not."""
        explained = self._run(Statement(f"EXPLAIN {asked.statement.sql}", asked.statement.parameters))
        if isinstance(explained, Failure):
            return explained
        writes = any(opcode == "Transaction" and p2 for _, opcode, _, p2, *_ in explained.rows)
        return Result(rows=((int(not writes),),))

    def _run(self, statement: Statement) -> Result | Failure:
        try:
            cursor = self._database.execute(statement.sql, statement.parameters)
        except (sqlite3.Error, ValueError, OverflowError, TypeError) as error:
            code, name = getattr(error, "sqlite_errorcode", 1), getattr(error, "sqlite_errorname", "error")
            return Failure(code, name, str(error))
        columns = tuple(each[0] for each in cursor.description or ())
        return Result(max(0, cursor.rowcount), cursor.lastrowid or 0, columns, tuple(cursor.fetchall()))
