"""The attendant: serves one client that has been welcomed, by its role. Knows no socket.

Each request is looked at, handed to the desk, and answered with what the desk tells. What is wrong with a request is
an answer to it; what is wrong with the conversation raises `Declined`, and ends it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import partial

import msgspec

from greenline.access import wire
from greenline.kernel.actions import Action, Outcome, Verdict, pack
from greenline.kernel.identities import NAME
from greenline.kernel.statements import Member, Role, encode
from greenline.node.edge import Declined, Desk, Limits, Told, kind_of
from greenline.node.logfeed import Feed, Feeds
from greenline.node.scrutiny import Scrutiny, is_trial, sound_request
from greenline.node.users import Known, demand_sound
from greenline.replication import port
from greenline.replication.port import Accepted, Answer, Forced, Level, Replied, Unanswered

Asked = wire.Write | wire.Read | wire.Administer | wire.Appoint | wire.Survive | wire.Log | wire.Digests
"""What has a ticket, and is answered."""
NOT_YET = 0
"""The desk's ticket of what it has not given one."""


class Pending(msgspec.Struct, gc=False):
    """A request that is not answered."""

    size: int
    desk_ticket: int = NOT_YET
    is_taken: bool = False
    """The replica has accepted it, and will order it, however long that takes: it burdens nobody here."""


class Attendant:
    def __init__(
        self,
        desk: Desk,
        limits: Limits,
        known: Known,
        send: Callable[[wire.Answer], None],
        is_clogged: Callable[[], bool] = lambda: False,
    ) -> None:
        self.known = known
        self._desk = desk
        self._limits = limits
        self._send = send
        self._scrutiny = Scrutiny(desk, limits)
        self._pending: dict[int, Pending] = {}
        self._bytes = 0
        self._taken = 0
        """Of those that are pending."""
        self.feeds = Feeds(send, is_clogged)

    @property
    def is_busy(self) -> bool:
        """So much is unanswered that no more should be taken."""
        too_many = len(self._pending) - self._taken + len(self.feeds) >= self._limits.outstanding
        return too_many or self._bytes >= self._limits.outstanding_bytes

    def leave(self) -> None:
        """The client is gone: nobody waits."""
        self.feeds.close()
        for pending in self._pending.values():
            if pending.desk_ticket != NOT_YET:
                self._desk.forget(pending.desk_ticket)
        self._pending.clear()

    def serve(self, request: wire.Request, size: int) -> None:
        """Raises `Declined` if the conversation is over."""
        if isinstance(request, wire.Enough):
            self._on_enough(request.ticket)
            return
        if isinstance(request, wire.Hello):
            raise Declined("malformed", "you have been welcomed already: Hello is said once")
        ticket = request.ticket
        if ticket in self._pending or ticket in self.feeds:
            raise Declined("malformed", f"ticket {ticket} is not answered yet; every request needs one of its own")
        if not self._desk.is_open:
            self._send(wire.No(ticket, "closed", self._desk.why_closed, is_retriable=True))
            return
        pending = self._pending[ticket] = Pending(size)
        self._bytes += size
        try:
            given = self._hand_over(request)
        except Declined as no:
            self._settle(ticket)
            self._send(wire.No(ticket, no.kind, no.reason, no.is_retriable))
        else:
            pending.desk_ticket = given

    def _hand_over(self, request: Asked) -> int:
        """The desk's ticket, if it gives one. It may have answered by then."""
        desk = self._desk
        told = partial(self._on_told, request.ticket)
        match request:
            case wire.Write():
                self.known.demand("write")
                self._scrutiny.demand_sound(request)
                return desk.submit(request.actions, request.count, request.level, told, tell_taken=request.tell_taken)
            case wire.Read(outcome_of=None):
                asked = sound_request(request)
                self.known.demand("write" if is_trial(asked) else "read")
                return desk.ask(asked, request.reads, max(0, request.after), request.is_patient, told)
            case wire.Read(outcome_of=outcome_of):
                assert outcome_of is not None
                return desk.ask(outcome_of, request.reads, max(0, request.after), request.is_patient, told)
            case wire.Administer(_, change):
                self.known.demand("admin")
                return desk.reconfigure(change, told)
            case wire.Appoint(_, change):
                self.known.demand("admin")
                return desk.submit(appointing(change, desk), 1, Level.LOCAL, told, tell_taken=False)
            case wire.Survive(_, survivors, dead, reason):
                self.known.demand("admin")
                return desk.force(survivors, dead, reason, told)
            case wire.Log(ticket):
                self._settle(ticket)
                self.feeds.follow(Feed(desk, self._limits, request, is_admin=lambda: self.known.may("admin")))
            case wire.Digests(ticket):
                desk.digests(partial(self._on_digests, ticket))
        return NOT_YET

    def _on_enough(self, ticket: int) -> None:
        self.feeds.stop(ticket)
        pending = self._settle(ticket)
        if pending is not None and pending.desk_ticket != NOT_YET:
            self._desk.forget(pending.desk_ticket)

    def _on_told(self, ticket: int, told: Told) -> None:
        if isinstance(told, Accepted):
            pending = self._pending.get(ticket)
            if pending is not None:
                self._take(pending)
                self._send(wire.Taken(ticket, told.bundle, told.where))
        elif self._settle(ticket) is not None:
            self._send(self._answer(ticket, told))

    def _answer(self, ticket: int, told: Replied | Answer | port.Refused | Unanswered | Forced) -> wire.Answer:
        match told:
            case Replied(_, position, sub, outcomes, level, where):
                return wire.Done(ticket, position, sub, outcomes, level, where)
            case Answer(_, rows, outcome, position, reds, reads, where):
                return wire.Rows(ticket, rows, outcome, position, reds, reads, where)
            case port.Refused(_, reason, is_retriable):
                return wire.No(ticket, kind_of(told), reason, is_retriable)
            case Unanswered(_, reason):
                return wire.Lost(ticket, reason)
            case Forced(_, epoch):
                forced = Outcome(Verdict.DONE, encode(epoch))
                return wire.Done(ticket, 0, 0, (forced,), Level.LOCAL, self._desk.where)

    def _on_digests(self, ticket: int, position: int, order: bytes, state: bytes) -> None:
        if self._settle(ticket) is not None:
            self._send(wire.Stands(ticket, position, order, state, self._desk.where))

    def _settle(self, ticket: int) -> Pending | None:
        """It is answered, or nobody waits for it: None if that is so already."""
        pending = self._pending.pop(ticket, None)
        if pending is not None:
            self._bytes -= pending.size
            self._taken -= pending.is_taken
        return pending

    def _take(self, pending: Pending) -> None:
        self._bytes -= pending.size
        pending.size = 0
        self._taken += not pending.is_taken
        pending.is_taken = True


def appointing(change: Role | Member, desk: Desk) -> bytes:
    """The action that makes it so, in a session of its own: asked for twice it is done twice, and comes to the same."""
    if isinstance(change, Role):
        demand_sound(change)
    elif not re.fullmatch(NAME, change.name):
        raise Declined("malformed", f"{change.name!r} cannot name a replica: use 1 to 32 letters, digits, '-' or '_'")
    session = f"appoint-{secrets.token_hex(8)}@{desk.durable_green}"
    return pack((Action(session, 1, encode(change)),))
