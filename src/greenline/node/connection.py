"""One connection of a client: frames in, frames out, and no more of either than the node can bear.

There is no task, queue or future for a request. All answers of one turn of the loop leave in one write. A client that
does not take its answers, or has asked for much that is not answered, is not read from until that is better: what it
says meanwhile waits in its own machine.

The first byte says whether it is TLS. Where that is required, whoever comes without is told so in clear, in words that
it understands, and is not heard.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from enum import Enum

import msgspec

from greenline.access import wire
from greenline.kernel.actions import Outcome
from greenline.kernel.codec import Garbled
from greenline.kernel.statements import Reply, Result
from greenline.node.attendant import Attendant
from greenline.node.edge import Declined, Desk, Limits
from greenline.node.tls import HANDSHAKE, Broken, Tls
from greenline.node.users import Known, Users

LINGERS_S = 2.0
"""Who is told that it is over gets so much time to read it: closing at once may take the words back."""
_HUNG_UP = (7, 8)
"""The states of a connection, as Linux counts them, when the other end has closed it, in anger or in peace."""
_MEMBERS = "SELECT name, clients FROM greenline_members"


_NEEDS_TLS = "this port needs TLS: connect with it, and trust the authority that follows from the cluster's key"


class Stage(Enum):
    FRESH = "fresh"
    """It has not said a byte."""
    UNKNOWN = "unknown"
    JUDGED = "judged"
    """It has said who it is, and that is being checked."""
    WELCOMED = "welcomed"
    DEPARTING = "departing"
    """It was told that it is over; whatever it says is not heard."""


class Connection(asyncio.Protocol):
    def __init__(
        self,
        desk: Desk,
        users: Users,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        refusal: Declined | None = None,
    ) -> None:
        """Without `tls`, in clear. With a `refusal`, that is all that it is told."""
        self.stage = Stage.FRESH
        self.attendant: Attendant | None = None
        self.ended: Declined | None = None
        """Why, if it was we who ended it."""
        self._desk = desk
        self._users = users
        self._limits = limits
        self._context = tls
        self._tls: Tls | None = None
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self.is_gone: asyncio.Future[None] = self._loop.create_future()
        self._frames = wire.Frames()
        self._leaving: list[bytes] = []
        """Answers that leave at the end of this turn of the loop."""
        self._flushing: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        """The one thing that this stage waits for."""
        self._written = 0
        self._taken = 0
        """How much of what was written was gone when we last looked."""
        self._is_clogged = False
        self._is_reading = True

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.unsent_bytes)
        late = Declined("malformed", f"no Hello came within {self._limits.hello_s:g} s")
        self._timer = self._loop.call_later(self._limits.hello_s, self.end, late)

    def data_received(self, data: bytes) -> None:
        try:
            if self.stage is Stage.FRESH:
                self._on_first_byte(data[0])
            plain = self._opened(data)
            if self.stage is not Stage.DEPARTING:
                for frame in self._frames.feed(plain):
                    self._on_frame(frame)
        except wire.TooLong as error:
            self.end(Declined("too large", str(error)))
        except Garbled as error:
            self.end(Declined("malformed", str(error)))
        except Declined as no:
            self.end(no)
        else:
            self._read_or_not()

    def pause_writing(self) -> None:
        self._is_clogged = True
        self._taken = self._written - self._transport.get_write_buffer_size()
        if self.stage is Stage.WELCOMED:
            self._set_timer(self._loop.call_later(self._limits.stuck_s, self._look_whether_stuck))
        self._read_or_not()

    def resume_writing(self) -> None:
        self._is_clogged = False
        if self.stage is Stage.WELCOMED:
            self._set_timer(None)
        if self.attendant is not None:
            self.attendant.feeds.go_on()
        self._read_or_not()

    def connection_lost(self, _: Exception | None) -> None:
        self._depart()
        self._set_timer(None)
        if self._flushing is not None:
            self._flushing.cancel()
        self.is_gone.set_result(None)

    # What it says.

    def send(self, answer: wire.Answer) -> None:
        frame = wire.framed(answer)
        if len(frame) > wire.MOST_BYTES:
            frame = wire.framed(_shortened(answer))
        self._leaving.append(frame)
        if self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush)

    def end(self, no: Declined) -> None:
        """The conversation is over, for this reason."""
        if self.stage is Stage.DEPARTING:
            return
        self.ended = no
        self._depart()
        if not self._can_speak:
            self._transport.close()
            return
        self.send(wire.No(0, no.kind, no.reason, no.is_retriable))
        self._set_timer(self._loop.call_later(LINGERS_S, self._transport.abort))
        self._read_or_not()

    def look_whether_left(self) -> None:
        """Who is not read from is not seen to hang up; the kernel knows."""
        if self._is_reading or self._transport.is_closing():
            return
        socket_of = self._transport.get_extra_info("socket")
        if socket_of.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _HUNG_UP:
            self._transport.abort()

    # How it goes.

    def _on_first_byte(self, first: int) -> None:
        self.stage = Stage.UNKNOWN
        if self._context is not None:
            if first != HANDSHAKE:
                raise Declined("tls", _NEEDS_TLS)
            self._tls = Tls(self._context)

    def _opened(self, data: bytes) -> bytes:
        if self._tls is not None:
            try:
                data = self._tls.opened(data)
            except Broken as error:
                raise Declined("handshake", f"TLS: {error}") from None
            finally:
                self._hand_down(self._tls.leaving())
            if self._tls.is_over:
                self._transport.close()
        if self._refusal is not None and self._can_speak:
            raise self._refusal
        return data

    @property
    def _can_speak(self) -> bool:
        return self._tls is None or self._tls.is_agreed

    def _on_frame(self, frame: bytes) -> None:
        request = wire.request_of(frame)
        if self.attendant is not None:
            self.attendant.serve(request, len(frame))
        elif self.stage is not Stage.UNKNOWN or not isinstance(request, wire.Hello):
            raise Declined("malformed", "say Hello first, and wait for Welcome before you ask for anything")
        else:
            self._on_hello(request)

    def _on_hello(self, hello: wire.Hello) -> None:
        if hello.version != wire.VERSION:
            raise Declined("version", f"this node speaks version {wire.VERSION}, and you {hello.version}; use that one")
        if not self._desk.is_open:
            raise Declined("closed", self._desk.why_closed, is_retriable=True)
        self.stage = Stage.JUDGED
        self._set_timer(None)
        host, *_ = self._transport.get_extra_info("peername") or ("",)
        self._users.check(host, hello.user, hello.password, self._on_judged)

    def _on_judged(self, known: Known | Declined) -> None:
        if isinstance(known, Declined):
            self.end(known)
            return

        def on_members(reply: Reply) -> None:
            came = {name: clients for name, clients in reply.rows if clients} if isinstance(reply, Result) else {}
            self._welcome(known, self._desk.clients | came)

        self._desk.look_up(_MEMBERS, (), on_members)

    def _welcome(self, known: Known, clients: dict[str, str]) -> None:
        if self.stage is not Stage.JUDGED:
            return
        self.stage = Stage.WELCOMED
        self._frames.most = self._limits.frame_bytes
        self.attendant = Attendant(self._desk, self._limits, known, self.send, lambda: self._is_clogged)
        desk = self._desk
        self.send(
            wire.Welcome(wire.VERSION, desk.where, desk.durable_green, known.role, clients, self._limits.action_bytes)
        )
        self._read_or_not()

    def _depart(self) -> None:
        self.stage = Stage.DEPARTING
        if self.attendant is not None:
            self.attendant.leave()
            self.attendant = None

    def _flush(self) -> None:
        self._flushing = None
        if self._transport.is_closing():
            return
        data = b"".join(self._leaving)
        self._leaving.clear()
        if self._tls is not None:
            self._tls.seal(data)
            data = self._tls.leaving()
        self._hand_down(data)
        if self._transport.get_write_buffer_size() > self._limits.most_unsent_bytes:
            self.ended = Declined("stuck", "it took its answers too slowly")
            self._transport.abort()
        self._read_or_not()

    def _hand_down(self, data: bytes) -> None:
        if data:
            self._written += len(data)
            self._transport.write(data)

    def _read_or_not(self) -> None:
        """Who departs is read to the end, unheard: else the kernel takes back what it was told."""
        is_judged = self.stage is Stage.JUDGED
        is_busy = self.attendant is not None and (self._is_clogged or self.attendant.is_busy)
        if self._is_reading == (is_judged or is_busy) and not self._transport.is_closing():
            self._is_reading = not self._is_reading
            (self._transport.resume_reading if self._is_reading else self._transport.pause_reading)()

    def _look_whether_stuck(self) -> None:
        taken = self._written - self._transport.get_write_buffer_size()
        if taken == self._taken:
            self.ended = Declined("stuck", f"it took nothing for {self._limits.stuck_s:g} s")
            self._transport.abort()
            return
        self._taken = taken
        self._timer = self._loop.call_later(self._limits.stuck_s, self._look_whether_stuck)

    def _set_timer(self, timer: asyncio.TimerHandle | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer


def _shortened(answer: wire.Answer) -> wire.Answer:
    """The same, if it would be longer than any frame: of outcomes the verdicts, of everything else that it is so."""
    if not isinstance(answer, wire.Done):
        ticket = 0 if isinstance(answer, wire.Welcome) else answer.ticket
        return wire.No(ticket, "too large", f"the answer has more than {wire.MOST_BYTES} bytes; ask for less at a time")
    cut = [Outcome(each.verdict, b"", each.position, each.sub, each.is_again, False) for each in answer.outcomes]
    return msgspec.structs.replace(answer, outcomes=tuple(cut))
