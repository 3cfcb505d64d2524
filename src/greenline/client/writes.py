"""Writes: what was asked leaves in few frames, and is asked again, in order, until it is answered. Does no I/O itself.

Requests of one turn of the event loop share frames, as far as the window of the session goes. When anything comes back
undecided (the node is busy, an earlier request was lost), nothing more is sent until all that is on its way has been
answered or taken; then all else that is unanswered is sent again, in order. The same after a new connection: nothing is
decided twice, because every request keeps its session and number. See docs/semantics.md.

When all of a full window is accepted and not green, as in a component that is not primary, another session is begun:
sessions are only names, and their requests are still sent in the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Iterable, Iterator

from greenline.access import wire
from greenline.client.asked import Asked, Part, Session
from greenline.client.connection import Connection
from greenline.client.errors import InterfaceError, refusal_of
from greenline.client.patience import TRIES, is_about_the_node, pause_s
from greenline.kernel.actions import Verdict, pack
from greenline.replication.port import Level

FRAME_BYTES = 1_000_000
"""A frame is not made larger than this by a further action: a bundle holds a MiB."""
_SESSION_IS_OVER = frozenset({Verdict.EXPIRED, Verdict.RELEASED})


class Writes:
    def __init__(self, tickets: Iterator[int]) -> None:
        self._tickets = tickets
        self._queue: deque[Asked] = deque()
        """Not, or not all, cut into parts."""
        self._again: deque[Part] = deque()
        """To be numbered anew, before what is queued."""
        self._sessions: dict[str, Session] = {}
        """By name, as they were begun. The last one is where new requests go; the others wait for answers."""
        self._in_flight: dict[int, list[Part]] = {}
        """What was sent on this connection and is not answered, by ticket."""
        self._taken: set[int] = set()
        """Tickets of it that are accepted: they will be answered, perhaps in hours."""
        self._over: dict[str, str] = {}
        """Sessions that are, and why."""
        self._connection: Connection | None = None
        self._green = 0
        """A position that this connection's node has on disk: what a session is named by."""
        self._is_troubled = False
        self._why_elsewhere = ""
        self._troubles = 0
        """In a row."""
        self._flushing: asyncio.Handle | None = None
        self._settling: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Does anybody wait for an answer?"""
        return bool(self._queue or self._again or any(session.outstanding for session in self._sessions.values()))

    def ask(self, asked: Asked) -> None:
        self._queue.append(asked)
        self._flush_soon()

    def withdraw(self, asked: Asked) -> bool:
        """True: nothing of it was ever sent, and nothing will be."""
        if asked.cut or asked not in self._queue:
            return False
        self._queue.remove(asked)
        return True

    def saw(self, position: int, level: Level) -> None:
        if level is not Level.MEMORY:
            self._green = max(self._green, position)

    # Connections come and go.

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        self._green = connection.welcome.position
        self._troubles = 0
        self._send_again()

    def detach(self) -> None:
        self._connection = None
        self._in_flight.clear()
        self._taken.clear()
        for session in self._sessions.values():
            session.in_flight = 0
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self._close_what_is_over()
        self._is_troubled = False
        self._why_elsewhere = ""

    def close(self, reason: str) -> None:
        """Nothing will be asked again."""
        self.detach()
        for session in self._sessions.values():
            self._again.extend(session.close(reason))
        for part in self._again:
            part.fail(InterfaceError(f"{reason}; nothing came of it"))
        for asked in self._queue:
            for place in range(asked.cut, len(asked.bodies)):
                asked.settle(place, InterfaceError(f"{reason}; nothing came of it"))
        self._sessions.clear()
        self._again.clear()
        self._queue.clear()

    # Out.

    def _flush_soon(self) -> None:
        """Once, at the end of this turn: what others ask in it goes along."""
        if self._flushing is None and self._connection is not None and not self._is_troubled:
            self._flushing = asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = None
        if self._is_troubled:
            return
        fresh: list[Part] = []
        while self._again or self._queue:
            session = self._session()
            if session.room <= 0:
                break
            part = self._next_part(session.room)
            session.number(part)
            fresh.append(part)
        self._send(fresh)

    def _session(self) -> Session:
        """Where new requests go."""
        last = self._newest
        if last is None or last.name in self._over or (last.room <= 0 and last.is_all_taken):
            last = Session(f"c{secrets.token_hex(8)}@{self._green}")
            self._sessions[last.name] = last
        return last

    @property
    def _newest(self) -> Session | None:
        return self._sessions[next(reversed(self._sessions))] if self._sessions else None

    def _next_part(self, room: int) -> Part:
        if self._again:
            if len(self._again[0]) > room:
                first = self._again.popleft()
                self._again.extendleft(reversed(first.split()))
            return self._again.popleft()
        asked = self._queue[0]
        part = asked.next_part(room, FRAME_BYTES)
        if part.stop == len(asked.bodies):
            self._queue.popleft()
        return part

    def _send(self, parts: Iterable[Part]) -> None:
        """In as few frames as may be."""
        frame: list[Part] = []
        size = count = 0
        for part in parts:
            is_full = size + part.size > FRAME_BYTES or count + len(part) > wire.MOST_ACTIONS
            if frame and (is_full or _manner(part) != _manner(frame[0])):
                self._send_frame(frame)
                frame, size, count = [], 0, 0
            frame.append(part)
            size += part.size
            count += len(part)
        if frame:
            self._send_frame(frame)

    def _send_frame(self, parts: list[Part]) -> None:
        assert self._connection is not None
        ticket = next(self._tickets)
        sessions = self._sessions
        actions = tuple(itertools.chain.from_iterable(sessions[part.session].actions_of(part) for part in parts))
        level, tell_taken = _manner(parts[0])
        for part in parts:
            part.times += 1
            sessions[part.session].in_flight += 1
        self._in_flight[ticket] = parts
        self._connection.send(wire.Write(ticket, len(actions), pack(actions), level, tell_taken))

    def _send_again(self) -> None:
        """All that is unanswered and not accepted here, in order; then go on."""
        self._is_troubled = False
        if self._connection is not None:
            here = {id(part) for parts in self._in_flight.values() for part in parts}
            going_on = [session for session in self._sessions.values() if session.name not in self._over]
            unanswered = [part for session in going_on for part in session.outstanding if not part.is_settled]
            self._send([part for part in unanswered if id(part) not in here])
            self._flush_soon()

    # Back.

    def on_answer(self, answer: wire.Answer) -> bool:
        """False: it is not about a write."""
        if not isinstance(answer, wire.Taken | wire.Done | wire.No | wire.Lost) or answer.ticket not in self._in_flight:
            return False
        if isinstance(answer, wire.Taken):
            for part in self._in_flight[answer.ticket]:
                part.take(answer.where)
            self._taken.add(answer.ticket)
            self._tell_taken(self._in_flight[answer.ticket])
            self._flush_soon()
            self._go_on()
            return True
        parts = self._in_flight.pop(answer.ticket)
        self._taken.discard(answer.ticket)
        for part in parts:
            self._sessions[part.session].in_flight -= 1
        match answer:
            case wire.Done():
                self._on_done(answer, parts)
                self._tell_taken(parts)
            case wire.No():
                self._on_no(answer, parts)
            case wire.Lost():
                self._elsewhere(answer.reason)
        self._go_on()
        return True

    def _on_done(self, done: wire.Done, parts: list[Part]) -> None:
        self.saw(done.position, done.level)
        if len(done.outcomes) != sum(map(len, parts)):
            self._elsewhere(f"it gave {len(done.outcomes)} outcomes for {sum(map(len, parts))} actions")
            return
        at = 0
        for part in parts:
            outcomes = done.outcomes[at : at + len(part)]
            at += len(part)
            session = self._sessions[part.session]
            if session.answer(part, outcomes, done.where, done.level):
                self._is_troubled = True
                if verdicts := _SESSION_IS_OVER & {outcome.verdict for outcome in outcomes}:
                    self._over[session.name] = f"the session is over ({' '.join(sorted(verdicts))})"
            session.receive()

    def _on_no(self, no: wire.No, parts: list[Part]) -> None:
        """Nothing of it is kept there. Its numbers are not used, so that its session cannot go on past them."""
        self._is_troubled = True
        for part in parts:
            part.is_told = True
        if no.is_retriable:
            if is_about_the_node(no) or self._troubles >= TRIES:
                self._elsewhere(no.reason)
            return
        if no.kind == "ending":
            self._elsewhere(no.reason)  # and have a newer position to name a session by
        else:
            for part in parts:
                part.refusal = refusal_of(no.kind, no.reason)
                if part.times == 1:
                    part.fail(part.refusal)  # there is no other copy of it; what stands before it may take hours
        self._over.update({part.session: no.reason for part in parts})

    def _elsewhere(self, reason: str) -> None:
        self._is_troubled = True
        self._why_elsewhere = reason

    def _go_on(self) -> None:
        if not self._is_troubled:
            self._troubles = 0
            self._close_what_is_over()
            self._drop_finished()
            self._flush_soon()
        elif self._is_all_heard_of:
            self._settle_troubles()

    @property
    def _is_all_heard_of(self) -> bool:
        """What is still on its way is accepted: it stands before whatever is sent next."""
        return len(self._taken) == len(self._in_flight)

    def _settle_troubles(self) -> None:
        """All that was on its way has been answered, or accepted."""
        assert self._connection is not None
        self._close_what_is_over()
        self._drop_finished()
        self._troubles += 1
        if self._why_elsewhere:
            self._connection.abandon(self._why_elsewhere)
            return
        if self._settling is not None:
            self._settling.cancel()
        loop = asyncio.get_running_loop()
        self._settling = loop.call_later(pause_s(self._troubles), self._send_again_on, self._connection)

    def _send_again_on(self, connection: Connection) -> None:
        if connection is self._connection and self._is_troubled and self._is_all_heard_of:
            self._send_again()

    def _tell_taken(self, parts: Iterable[Part]) -> None:
        for name in {part.session for part in parts}:
            self._sessions[name].tell_taken()

    def _close_what_is_over(self) -> None:
        """But for those of which something is on its way: it is accepted, and will be answered."""
        for name in [name for name in self._over if not self._sessions[name].in_flight]:
            self._again.extend(self._sessions.pop(name).close(self._over.pop(name)))

    def _drop_finished(self) -> None:
        if len(self._sessions) > 1:
            newest = self._newest
            self._sessions = {name: each for name, each in self._sessions.items() if each.outstanding or each is newest}


def _manner(part: Part) -> tuple[Level, bool]:
    return part.asked.level, part.asked.tell_taken
