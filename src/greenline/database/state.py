"""The replicated state in an SQLite database: what bundles do to it, what it answers, and what it comes to.

It runs in whatever transaction is open, and neither begins nor ends one. Each action has a savepoint of its own:
if it fails, nothing of it is left, and the others do not notice.
"""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

from greenline.database import operations, procedures, session_tables, snapshots
from greenline.database.operations import REFUSED, Fails, Run, carry_out, may_be_relaxed
from greenline.database.procedures import Procedure, Procedures
from greenline.database.session_tables import Sessions
from greenline.database.snapshots import Snapshot
from greenline.kernel.actions import DIGEST_BYTES, Action, Outcome, OutcomeOf, Verdict, digest_of
from greenline.kernel.codec import Garbled
from greenline.kernel.database import Activate, Expire, System

TABLES = {**operations.TABLES, **session_tables.TABLES, **procedures.TABLES}
"""All that replicas have in common: what is compared and what is sent. With the number of columns that are the key."""
NOT_RELAXED = b"its place in the order matters"

_SCHEMA = f"""
CREATE TABLE stands (position INTEGER NOT NULL, outcomes BLOB NOT NULL, basis BLOB NOT NULL);
INSERT INTO stands VALUES (0, zeroblob({DIGEST_BYTES}), x'');
{operations.SCHEMA}{session_tables.SCHEMA}{procedures.SCHEMA}
"""


class State:
    def __init__(self, db: sqlite3.Connection, known: tuple[Procedure, ...]) -> None:
        self._db = db
        self._procedures = Procedures(db, known)
        self._sessions = Sessions(db)

    def create(self) -> None:
        self._db.executescript(_SCHEMA)

    def stands(self) -> tuple[int, bytes]:
        """The position, and the chained digest of all outcomes up to it."""
        position, outcomes = self._db.execute("SELECT position, outcomes FROM stands").fetchone()
        return position, outcomes

    def basis(self) -> bytes:
        (basis,) = self._db.execute("SELECT basis FROM stands").fetchone()
        return bytes(basis)

    # What is applied. `Lacking` is raised where a procedure is called that is not here.

    def move_on(self, position: int, replies: tuple[Outcome, ...]) -> bytes:
        """To this position, where the actions came to this; the chain from then on."""
        _, before = self.stands()
        chain = blake2b(before, digest_size=DIGEST_BYTES)
        for reply in replies:
            chain.update(b" %s %d " % (reply.verdict.value.encode(), len(reply.value)) + reply.value)
        outcomes = chain.digest()
        self._db.execute("UPDATE stands SET position = ?, outcomes = ?", (position, outcomes))
        return outcomes

    def order(self, system: System, position: int) -> None:
        """A horizon that lies ahead would refuse everybody who is still to come: it is here at most."""
        match system:
            case Expire(before):
                self._sessions.expire(min(before, position))
            case Activate():
                self._procedures.activate(system)

    def decide(self, action: Action, position: int, sub: int) -> Outcome:
        return self._sessions.decide(action, position, sub, self._execute)

    def _execute(self, action: Action) -> tuple[Verdict, bytes]:
        if action.is_relaxed and not may_be_relaxed(action):
            return Verdict.FAILED, NOT_RELAXED
        if any(digest_of(self.ask(read.request)) != read.digest for read in action.reads):
            return Verdict.CONFLICT, b""
        return self._run(action)

    def _run(self, action: Action) -> tuple[Verdict, bytes]:
        self._db.execute("SAVEPOINT action")
        try:
            verdict, value = Verdict.DONE, carry_out(Run(self._db, self._procedures, action))
        except (Fails, sqlite3.IntegrityError) as error:
            self._db.execute("ROLLBACK TO action")
            verdict, value = Verdict.FAILED, str(error) if isinstance(error, Fails) else REFUSED
        self._db.execute("RELEASE action")
        return verdict, value.encode()

    # What is asked.

    def ask(self, request: bytes) -> bytes:
        """What an operation would come to; whatever it changes is undone."""
        self._db.execute("SAVEPOINT question")
        try:
            return self._run(Action("", 0, request))[1]
        finally:
            self._db.execute("ROLLBACK TO question")
            self._db.execute("RELEASE question")

    def outcome_of(self, asked: OutcomeOf) -> Outcome:
        return self._sessions.outcome_of(asked, self.stands()[0])

    def digest(self) -> bytes:
        """Of all tables, and of all outcomes."""
        _, outcomes = self.stands()
        digest = blake2b(outcomes, digest_size=DIGEST_BYTES)
        for table, key in TABLES.items():
            columns = ", ".join(str(1 + n) for n in range(key))
            digest.update(repr(self._db.execute(f"SELECT * FROM {table} ORDER BY {columns}").fetchall()).encode())
        return digest.digest()

    # What is sent.

    def snapshot(self, chunk_rows: int) -> Snapshot:
        return snapshots.take(self._db, TABLES, self.stands(), chunk_rows)

    def become(self, position: int, chunks: dict[bytes, bytes], basis: bytes) -> None:
        """Raises `Garbled`; who calls it undoes it then."""
        header, parts = snapshots.opened(chunks)
        if header.position != position:
            raise Garbled(f"these chunks are of position {header.position}, not of {position}")
        snapshots.load(self._db, TABLES, parts)
        row = (header.position, header.outcomes, basis)
        self._db.execute("UPDATE stands SET position = ?, outcomes = ?, basis = ?", row)
