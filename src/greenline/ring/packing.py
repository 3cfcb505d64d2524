"""Packing: messages into packets when the token is there, and out of them when they are delivered.

A packet has one sender and one service, so that what holds for packets (agreed, safe, all or nothing) holds for each
message in it. Nothing is ever packed anew: whoever repeats a packet repeats its bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, repeat

import msgspec

from greenline.kernel.effects import Effect, Ignored, Upcall
from greenline.kernel.identities import MessageId, ProcId
from greenline.kernel.ports import Busy, Deliver, Multicast, Ready, Service, TooLarge
from greenline.ring.messages import Regular
from greenline.ring.settings import Settings

FRAMING = 5
"""Bytes that a message takes in a packet beside its own, at most."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[bytes])


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """The content of a packet that has no number yet."""

    service: Service
    first: int
    part: int
    parts: int
    messages: Sequence[MessageId]
    """Those that have their place with this packet."""
    body: bytes


@dataclass(slots=True)
class Queue:
    """What waits for the token, in the order in which it was generated."""

    settings: Settings
    waiting: deque[Multicast] = field(default_factory=deque)
    waiting_bytes: int = 0
    parts_sent: int = 0
    """How many parts of the first message were sent, in the configuration that we are in."""
    is_busy: bool = False
    most: int = field(init=False)
    most_bytes: int = field(init=False)
    largest: int = field(init=False)
    refused_bytes: int = 0
    """The largest message that was refused since the port became busy."""

    def __post_init__(self) -> None:
        self.most = self.settings.most_queued
        self.most_bytes = self.settings.most_queued_bytes
        self.largest = self.settings.largest_message

    def queue_up(self, call: Multicast) -> bool:
        """Behind others that wait, a message only waits: nobody has to be woken for it. The path of nearly all."""
        waiting = self.waiting
        size = len(call.payload)
        total = self.waiting_bytes + size
        if not waiting or self.is_busy or len(waiting) >= self.most or total > self.most_bytes or size > self.largest:
            return False
        waiting.append(call)
        self.waiting_bytes = total
        return True

    def put(self, call: Multicast, out: list[Effect]) -> bool:
        """Take a message; say so if it cannot be taken."""
        size = len(call.payload)
        if size > self.largest:
            out.append(Upcall(TooLarge(call.message, self.largest)))
            return False
        if self.is_busy or len(self.waiting) >= self.most or not self._has_room(size):
            self.is_busy = True
            self.refused_bytes = max(self.refused_bytes, size)
            out.append(Upcall(Busy(call.message)))
            return False
        self.waiting.append(call)
        self.waiting_bytes += size
        return True

    def relieve(self, out: list[Effect]) -> None:
        """Say when messages are taken again: with room for what was refused, and half of all of it."""
        is_half_free = len(self.waiting) <= self.most // 2 and self.waiting_bytes <= self.most_bytes // 2
        if self.is_busy and is_half_free and self._has_room(self.refused_bytes):
            self.is_busy = False
            self.refused_bytes = 0
            out.append(Upcall(Ready()))

    def _has_room(self, size: int) -> bool:
        """One that is larger than all the room there is needs it for itself."""
        return self.waiting_bytes + size <= max(self.most_bytes, size)

    @property
    def packets(self) -> int:
        """About how many packets wait."""
        if not self.waiting:
            return 0
        framed = self.waiting_bytes + FRAMING * len(self.waiting)
        return max(1, -(-framed // self.settings.packet_bytes))

    def begin_anew(self) -> None:
        """In a new configuration a message that was sent in part is sent from its beginning."""
        self.parts_sent = 0

    def next_parcel(self) -> Parcel:
        """As many messages as a packet carries, or a part of one that is too large for it."""
        call = self.waiting[0]
        if len(call.payload) + FRAMING > self.settings.packet_bytes:
            return self._next_part(call)
        waiting = self.waiting
        service = call.service
        room = self.settings.packet_bytes
        payloads: list[bytes] = []
        messages: list[MessageId] = []
        while waiting:
            call = waiting[0]
            payload = call.payload
            room -= len(payload) + FRAMING
            if room < 0 or call.service is not service:
                break
            payloads.append(payload)
            messages.append(call.message)
            del waiting[0]
        body = _ENCODER.encode(payloads)
        self.waiting_bytes -= sum(map(len, payloads))
        return Parcel(service, messages[0].number, 1, 1, messages, body)

    def _next_part(self, call: Multicast) -> Parcel:
        size = self.settings.packet_bytes - FRAMING  # so that what is cut has two parts at least
        parts = -(-len(call.payload) // size)
        begin = self.parts_sent * size
        self.parts_sent += 1
        part = self.parts_sent
        messages: tuple[MessageId, ...] = ()
        if part == parts:
            self.waiting.popleft()
            self.waiting_bytes -= len(call.payload)
            self.parts_sent = 0
            messages = (call.message,)
        return Parcel(call.service, call.message.number, part, parts, messages, call.payload[begin : begin + size])


@dataclass(slots=True)
class Unpacking:
    """Puts large messages together again: within one configuration, as what is not complete at its end was not sent."""

    parts: dict[ProcId, list[bytes]] = field(default_factory=dict)

    def deliver(self, packet: Regular, out: list[Effect]) -> None:
        """Every message that has its place with this packet."""
        sender, incarnation, seq, service = packet.sender, packet.incarnation, packet.seq, packet.service
        if packet.parts > 1:
            held = self.parts.get(sender)
            if held is None or packet.part == 1:
                held = self.parts[sender] = []
            held.append(packet.body)
            if packet.part < packet.parts:
                return
            del self.parts[sender]
            payloads = [b"".join(held)]
        else:
            try:
                payloads = _DECODER.decode(packet.body)
            except (msgspec.DecodeError, RecursionError):
                # Everybody has the same bytes, so everybody passes over the same packet.
                out.append(Ignored("a packet that cannot be opened"))
                return
        first = packet.first
        if len(payloads) == 1:
            out.append(Upcall(Deliver(MessageId(sender, incarnation, first), service, payloads[0], seq, 0)))
            return
        # Half of what a packed ring costs is here: the loop stays in C.
        messages = map(MessageId, repeat(sender), repeat(incarnation), range(first, first + len(payloads)))
        out += map(Upcall, map(Deliver, messages, repeat(service), payloads, repeat(seq), count()))
