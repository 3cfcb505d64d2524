"""Nodes to be a client of: the real client port, TLS and passwords, on a stand-in for the engine and its database.

A `Cluster` has one order and one SQLite database, in memory, with the real rules for sessions. A `Server` is one of its
nodes, and can be told what to do with what it is asked: to be outside the primary component, to keep its answers to
itself, to lose or refuse. A `Cable` lies between it and its clients, and can be cut.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path

from greenline.access import passwords, wire
from greenline.database import session_tables
from greenline.database.session_tables import Sessions
from greenline.kernel.actions import Action, Outcome, OutcomeOf, Verdict, unpack
from greenline.kernel.statements import (
    Conflict,
    Failure,
    Member,
    Reply,
    Result,
    Role,
    Statement,
    Trial,
    Value,
    body_of,
    encode,
    request_of,
)
from greenline.node.certificates import ca_pem, server_context
from greenline.node.clients import Clients
from greenline.node.edge import Limits, Listener
from greenline.node.users import Users
from greenline.replication.port import (
    Accepted,
    Answer,
    BundleId,
    Change,
    Level,
    Reads,
    Refused,
    Replied,
    Unanswered,
    Where,
)
from greenline.replication.queries import NO_PRIMARY

KEY = b"k" * 32
PASSWORD = "swordfish"
_SCHEMA = """
CREATE TABLE greenline_users (name TEXT PRIMARY KEY, role TEXT, verifier TEXT);
CREATE TABLE greenline_members (name TEXT PRIMARY KEY, address TEXT, admin TEXT, clients TEXT);
"""


class Failing(Exception):
    def __init__(self, verdict: Verdict, reply: Failure | Conflict) -> None:
        super().__init__(str(reply))
        self.verdict = verdict
        self.reply = reply


class Cluster:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.executescript(session_tables.SCHEMA + _SCHEMA)
        self.sessions = Sessions(self.db)
        self.log: list[wire.Bundle] = []
        verifier = passwords.verifier(PASSWORD, bytes(16), n=2, r=1, p=1)
        self.db.execute("INSERT INTO greenline_users VALUES ('ada', 'write', ?), ('eve', 'read', ?)", (verifier,) * 2)

    @property
    def position(self) -> int:
        return len(self.log)

    def order(self, by: str, actions: bytes) -> tuple[Outcome, ...]:
        self.log.append(wire.Bundle(self.position + 1, BundleId(by, self.position + 1), (actions,)))
        decided = enumerate(unpack(actions))
        return tuple(self.sessions.decide(each, self.position, sub, self._execute) for sub, each in decided)

    def ask(self, request: bytes) -> bytes:
        asked = request_of(request)
        statements = asked.work.statements if isinstance(asked, Trial) else (asked.statement,)
        self.db.execute("SAVEPOINT query")
        try:
            return encode(self._run(statements)[-1])
        except Failing as failing:
            return encode(failing.reply)
        finally:
            self.db.execute("ROLLBACK TO query")
            self.db.execute("RELEASE query")

    def rows(self, sql: str) -> list[tuple[Value, ...]]:
        return self.db.execute(sql).fetchall()

    def _execute(self, action: Action) -> tuple[Verdict, bytes]:
        match body_of(action.body):
            case Role(user, role, verifier):
                self.db.execute("INSERT OR REPLACE INTO greenline_users VALUES (?, ?, ?)", (user, role, verifier))
                return Verdict.DONE, encode(())
            case Member(name, address, admin, clients):
                row = (name, address, admin, clients)
                self.db.execute("INSERT OR REPLACE INTO greenline_members VALUES (?, ?, ?, ?)", row)
                return Verdict.DONE, encode(())
            case work:
                self.db.execute("SAVEPOINT action")
                try:
                    return Verdict.DONE, encode(self._run(work.statements))
                except Failing as failing:
                    self.db.execute("ROLLBACK TO action")
                    return failing.verdict, encode(failing.reply)
                finally:
                    self.db.execute("RELEASE action")

    def _run(self, statements: tuple[Statement, ...]) -> tuple[Result, ...]:
        results = []
        for number, statement in enumerate(statements):
            before = self.db.total_changes
            try:
                cursor = self.db.execute(statement.sql, statement.parameters)
                rows = tuple(cursor.fetchall())
            except sqlite3.Error as error:
                failure = Failure(error.sqlite_errorcode, error.sqlite_errorname, str(error), number)
                raise Failing(Verdict.FAILED, failure) from error
            columns = tuple(column[0] for column in cursor.description or ())
            result = Result(self.db.total_changes - before, cursor.lastrowid or 0, columns, rows)
            if statement.expected not in {b"", result.seen}:
                raise Failing(Verdict.CONFLICT, Conflict(number))
            results.append(result)
        return tuple(results)


class Server:
    """A node of a cluster: what `greenline.node.edge.Desk` asks for, and the port that clients connect to."""

    def __init__(self, cluster: Cluster, name: str, *, has_tls: bool = False, action_bytes: int = 1 << 20) -> None:
        self.name = name
        self.cluster = cluster
        self.is_primary = True
        self.is_mute = False
        """Everything is done, and nobody is told."""
        self.loses = 0
        """So many of the next writes are ordered, and nobody learns here what became of them."""
        self.refuses: deque[Refused] = deque()
        """What the next writes are told."""
        self.ending_before: int | None = None
        self.writes = 0
        """So many were asked."""
        self.queries = 0
        self.changes = 0
        """Likewise, of the cluster."""
        self._reds: list[Callable[[], None]] = []
        """What waits for a primary component."""
        self._tickets = 0
        self._when_green: list[Callable[[], None]] = []
        self._users = Users(self, lambda: "credential")
        tls = server_context(KEY, name, []) if has_tls else None
        self._clients = Clients(self, self._users, Limits(action_bytes=action_bytes), tls)
        self.address = ""

    async def open(self) -> Server:
        host, port = await self._clients.listen(("127.0.0.1", 0))
        self.address = f"{host}:{port}"
        return self

    async def stop(self) -> None:
        await self._clients.close()
        self._users.close()

    def join(self) -> None:
        """The network has healed."""
        self.is_primary = True
        waiting, self._reds = self._reds, []
        for each in waiting:
            each()

    # What the client port asks.

    is_open = True
    why_closed = ""

    @property
    def where(self) -> Where:
        return Where(self.name, self.is_primary, 1, (self.name,))

    @property
    def clients(self) -> dict[str, str]:
        """Nobody: clients would find a way around the cables."""
        return {}

    @property
    def durable_green(self) -> int:
        return self.cluster.position

    def submit(self, actions: bytes, count: int, level: Level, told: Listener, *, tell_taken: bool) -> int:
        self.writes += 1
        ticket = self._ticket()
        if self.refuses:
            self._tell(told, self.refuses.popleft())
            return ticket
        if tell_taken:
            self._tell(told, Accepted(ticket, BundleId(self.name, ticket), self.where))

        def order() -> None:
            outcomes = self.cluster.order(self.name, actions)
            position = self.cluster.position
            if self.loses:
                self.loses -= 1
                self._tell(told, Unanswered(ticket, "this node goes down"))
            else:
                self._tell(told, Replied(ticket, position, 0, outcomes, level, self.where))
            for callback in self._when_green:
                callback()

        self._once_primary(order)
        return ticket

    def ask(self, request: bytes | OutcomeOf, reads: Reads, after: int, is_patient: bool, told: Listener) -> int:
        ticket = self._ticket()
        self.queries += 1

        def answer() -> None:
            position = self.cluster.position
            assert reads is not Reads.SESSION or position >= after, "this stand-in is never behind"
            rows, outcome = b"", None
            if isinstance(request, bytes):
                rows = self.cluster.ask(request)
            else:
                outcome = self.cluster.sessions.outcome_of(request, position)
            reds = len(self._reds) if reads is Reads.DIRTY else 0
            self._tell(told, Answer(ticket, rows, outcome, position, reds, reads, self.where))

        if reads is Reads.STRICT and not self.is_primary and not is_patient:
            self._tell(told, Refused(ticket, NO_PRIMARY))
        elif reads is Reads.STRICT:
            self._once_primary(answer)
        else:
            answer()
        return ticket

    def reconfigure(self, change: Change, told: Listener) -> int:
        ticket = self._ticket()
        self.changes += 1
        outcome = Outcome(Verdict.FAILED, f"nothing comes of {change} here".encode())
        self._tell(told, Replied(ticket, self.cluster.position + 1, 0, (outcome,), Level.LOCAL, self.where))
        return ticket

    def force(self, survivors: tuple[str, ...], dead: tuple[str, ...], reason: str, told: Listener) -> int:
        raise NotImplementedError

    def forget(self, ticket: int) -> None:
        """Whoever was told of it drops it."""

    def look_up(self, sql: str, parameters: tuple[Value, ...], told: Callable[[Reply], None]) -> None:
        told(Result(rows=tuple(self.cluster.db.execute(sql, parameters).fetchall())))

    def ordered(self, first: int, most_bytes: int) -> list[wire.Bundle]:
        return self.cluster.log[first - 1 : first + 1]

    def order_digest(self, position: int) -> bytes:
        return b"order"

    def when_green(self, callback: Callable[[], None]) -> None:
        self._when_green.append(callback)

    def digests(self, told: Callable[[int, bytes, bytes], None]) -> None:
        told(self.cluster.position, b"order", b"state")

    def _ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _once_primary(self, then: Callable[[], None]) -> None:
        if self.is_primary:
            then()
        else:
            self._reds.append(then)

    def _tell(self, told: Listener, what: Accepted | Replied | Answer | Refused | Unanswered) -> None:
        if not self.is_mute:
            asyncio.get_running_loop().call_soon(told, what)


class Cable:
    """Between clients and a server."""

    def __init__(self, to: str) -> None:
        self._to = to.rpartition(":")[::2]
        self._ends: list[asyncio.StreamWriter] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self.address = ""

    async def lay(self) -> Cable:
        self._listener = await asyncio.start_server(self._carry_both_ways, "127.0.0.1", 0)
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        return self

    def cut(self) -> None:
        """Everything that is on it is gone. It can be used again."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def remove(self) -> None:
        self._listener.close()
        await asyncio.sleep(0)  # whoever has just been accepted is on the cable then
        self.cut()
        while self._carrying:
            await asyncio.wait(self._carrying)
        await self._listener.wait_closed()

    async def _carry_both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.append(writer)
        onward_reader, onward_writer = await asyncio.open_connection(*self._to)
        self._ends.append(onward_writer)
        if writer.transport.is_closing():
            onward_writer.transport.abort()
        for source, sink in ((reader, onward_writer), (onward_reader, writer)):
            task = asyncio.create_task(_carry(source, sink))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()


def ca_file(directory: Path, key: bytes = KEY) -> Path:
    path = directory / "ca.pem"
    path.write_bytes(ca_pem(key))
    return path
