"""The desk: where whoever is connected to this node asks the engine, and is told.

Tickets are the desk's own, so that many may ask at once; each has somebody who is told of it, until its last answer.
When a life of the node ends, whoever waits is told so, and may ask for the same elsewhere; in the next one the desk is
open again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from greenline.access.wire import Bundle
from greenline.kernel.actions import OutcomeOf
from greenline.kernel.database import Digest, DigestOf
from greenline.kernel.identities import Configuration, ProcId
from greenline.kernel.statements import Failure, Inquiry, Reply, Statement, encode, reply_of
from greenline.node.driver import Node, Port
from greenline.node.edge import Discarded, Listener, Told
from greenline.replication.core import Boot, Engine, Phase
from greenline.replication.port import (
    Accepted,
    Answer,
    Ask,
    Change,
    Force,
    Forced,
    Joined,
    Left,
    Level,
    Reads,
    Reconfigure,
    Refused,
    Replied,
    Submit,
    Unanswered,
    Where,
)
from greenline.replication.replica import Replica, content_of, size_of
from greenline.replication.standing import Standing, standing

OVER = "this node has stopped; ask another"


class Desk:
    """Everything on the loop's thread."""

    def __init__(self, me: ProcId) -> None:
        self.left: int | None = None
        """The position where this replica has left for good."""
        self.clients: dict[ProcId, str] = {}
        """Where the members that its file names listen for clients; the database has those who came since."""
        self._me = me
        self._engine: Engine | None = None
        self._node: Node | None = None
        self._database: Port | None = None
        self._tickets = 0
        self._asking: dict[int, tuple[Listener, bool]] = {}
        """Who is told, and whether also of what is only accepted."""
        self._when_green: list[Callable[[], None]] = []
        self._digesting: list[Callable[[int, bytes, bytes], None]] = []
        """Who waits for what the state comes to."""

    def begin(self, engine: Engine, database: Port, node: Node) -> None:
        """A life: this node tells the desk what its engine says."""
        self._engine, self._database, self._node = engine, database, node
        self._digest()

    def end(self) -> None:
        """A life is over: what was asked may have been ordered or not."""
        asking, self._asking = self._asking, {}
        self._engine = self._database = self._node = None
        for ticket, (told, _) in asking.items():
            told(Unanswered(ticket, OVER))

    # What is asked.

    def submit(self, actions: bytes, count: int, level: Level, told: Listener, *, tell_taken: bool = False) -> int:
        return self._asks(lambda ticket: Submit(ticket, actions, count, level), told, tell_taken)

    def ask(self, request: bytes | OutcomeOf, reads: Reads, after: int, is_patient: bool, told: Listener) -> int:
        return self._asks(lambda ticket: Ask(ticket, request, reads, after, is_patient), told)

    def reconfigure(self, change: Change, told: Listener) -> int:
        return self._asks(lambda ticket: Reconfigure(ticket, change), told)

    def force(self, survivors: tuple[ProcId, ...], dead: tuple[ProcId, ...], reason: str, told: Listener) -> int:
        return self._asks(lambda ticket: Force(ticket, survivors, dead, reason), told)

    def _asks(self, call: Callable[[int], Any], told: Listener, tell_taken: bool = False) -> int:
        self._tickets += 1
        ticket = self._tickets
        if self._node is None or not self._node.is_running:
            told(Refused(ticket, OVER))
            return ticket
        self._asking[ticket] = told, tell_taken
        self._node.ask(call(ticket))
        return ticket

    def forget(self, ticket: int) -> None:
        """Whoever asked is gone. What was taken is ordered all the same."""
        self._asking.pop(ticket, None)

    def look_up(self, sql: str, parameters: tuple[Any, ...], told: Callable[[Reply], None]) -> None:
        """A query of the node's own, of the green state as it is here."""

        def answered(answer: Told) -> None:
            told(reply_of(answer.rows) if isinstance(answer, Answer) else Failure(0, "Refused", _reason(answer)))

        self.ask(encode(Inquiry(Statement(sql, parameters))), Reads.WEAK, 0, True, answered)

    # What is told.

    def tell(self, upcall: Any) -> None:
        match upcall:
            case Accepted(ticket):
                told, wants_it = self._asking.get(ticket, _NOBODY)
                if wants_it:
                    told(upcall)
            case Replied(ticket) | Answer(ticket) | Refused(ticket) | Unanswered(ticket) | Forced(ticket):
                told, _ = self._asking.pop(ticket, _NOBODY)
                told(upcall)
            case Left(position):
                self.left = position
            case Joined():
                pass

    def when_green(self, callback: Callable[[], None]) -> None:
        """Call this now and then while the order grows."""
        self._when_green.append(callback)

    def look(self) -> None:
        """The order may have grown."""
        for callback in self._when_green:
            callback()

    # What can be seen.

    @property
    def standing(self) -> Standing | None:
        return None if self._engine is None else standing(self._engine)

    @property
    def where(self) -> Where:
        phase = self._phase
        return Where(self._me, False, 0, (self._me,)) if phase is None else phase.server.requests.where

    @property
    def configuration(self) -> Configuration | None:
        phase = self._phase
        return None if phase is None or phase.place is None else phase.place.conf

    @property
    def replica(self) -> Replica | None:
        return None if self._phase is None else self._phase.server.replica

    @property
    def _phase(self) -> Phase | None:
        phase = None if self._engine is None else self._engine.phase
        return None if isinstance(phase, Boot) else phase

    @property
    def gone(self) -> tuple[ProcId, ...]:
        """Replicas that have left, or were removed."""
        return () if self.replica is None else tuple(gone.server for gone in self.replica.roster.gone)

    @property
    def durable_green(self) -> int:
        return 0 if self.replica is None else self.replica.durable_green

    @property
    def green(self) -> int:
        return 0 if self.replica is None else self.replica.green

    @property
    def ending_before(self) -> int | None:
        """Sessions that were named before this position are about to end: nothing more is to be taken for them."""
        replica = self.replica
        return None if replica is None or replica.roster.ending is None else replica.roster.ending.before

    @property
    def why_closed(self) -> str:
        replica = self.replica
        if self._node is None or not self._node.is_running or replica is None:
            return "this node is not running, or has just begun; ask another"
        if replica.is_new:
            return "this node is joining, and has nothing yet; ask another"
        return "this node has left the cluster; ask another" if replica.has_left else ""

    @property
    def is_open(self) -> bool:
        return not self.why_closed

    def ordered(self, first: int, most_bytes: int) -> list[Bundle]:
        """The order from a position on, as far as it is durable here, up to so many bytes but at least one bundle."""
        replica = self.replica
        if replica is None or first > replica.durable_green:
            return []
        if first <= replica.low:
            raise Discarded(replica.low + 1)
        found: list[Bundle] = []
        size = 0
        for position in range(first, replica.durable_green + 1):
            found.append(told_of(replica, position))
            size += size_of(replica.bodies[replica.at(position)])
            if size >= most_bytes:
                break
        return found

    def order_digest(self, position: int) -> bytes:
        """What the order comes to at a position that is kept."""
        replica = self.replica
        return b"" if replica is None or position < replica.low else replica.digest_at(position)

    def digests(self, told: Callable[[int, bytes, bytes], None]) -> None:
        """Of a position: what the order comes to, and the state. Who asks while one is made waits for the next."""
        self._digesting.append(told)
        if len(self._digesting) == 1:
            self._digest()

    def _digest(self) -> None:
        """For all who wait by now. A life that ends meanwhile leaves them to the next one."""
        if self._node is None or self._database is None or not self._digesting:
            return
        node, asking = self._node, len(self._digesting)

        def tell(answer: Any) -> None:
            if self._node is not node:
                return
            waiting, self._digesting = self._digesting[:asking], self._digesting[asking:]
            assert isinstance(answer, Digest), f"a digest was asked for, and answered with {answer!r}"
            for told in waiting:
                told(answer.position, self.order_digest(answer.position), answer.digest)
            self._digest()

        self._database(DigestOf(), lambda answer: node.soon(lambda: tell(answer)))


def told_of(replica: Replica, position: int) -> Bundle:
    """What stands at a position that is kept. Of a bundle without effect nothing is told but its name."""
    body = replica.bodies[replica.at(position)]
    change = b"" if body.change is None else msgspec.msgpack.encode(body.change)
    actions = () if position in replica.voided else body.actions
    system = replica.changes[position].system if position in replica.changes else ()
    return Bundle(position, body.id, actions, change, content_of(body), system, body.made_in)


def _nobody(_: Told) -> None:
    """Who asked has gone."""


_NOBODY: tuple[Listener, bool] = _nobody, False


def _reason(told: Told) -> str:
    return told.reason if isinstance(told, Refused | Unanswered) else "no answer"
