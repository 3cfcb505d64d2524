"""The outbox: what we have to say through the group communication port, in order, each thing when it may be said.

A message waits for its barrier (the body of a bundle, the content of a State), and for the port, which may be busy.
Both are waited for in line: the port numbers messages densely, and a State never overtakes the bundles before it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from greenline.kernel.effects import Downcall, Effect, Trace
from greenline.kernel.identities import MessageId, ProcId
from greenline.kernel.ports import Multicast, Service
from greenline.replication.messages import Control, Spoken, encode


@dataclass(frozen=True, slots=True)
class Item:
    message: Spoken
    service: Service
    gate: int
    witness: Trace | None = None
    """What is to be seen when it is said."""


@dataclass(slots=True)
class Outbox:
    me: ProcId
    life: int
    waiting: deque[Item] = field(default_factory=deque)
    handed: deque[tuple[int, Item]] = field(default_factory=deque)
    """Given to the port under these numbers, and not sent yet."""
    number: int = 0
    is_busy: bool = False

    def say(self, message: Spoken, service: Service, gate: int = 0, witness: Trace | None = None) -> None:
        self.waiting.append(Item(message, service, gate, witness))

    def pump(self, durable: int, out: list[Effect]) -> None:
        """Hand over what may be said by now."""
        while self.waiting and not self.is_busy and self.waiting[0].gate <= durable:
            item = self.waiting.popleft()
            self.number += 1
            self.handed.append((self.number, item))
            if item.witness is not None:
                out.append(item.witness)
            message = MessageId(self.me, self.life, self.number)
            out.append(Downcall(Multicast(message, item.service, encode(item.message)), gate=item.gate or None))

    def on_sent(self, message: MessageId) -> None:
        number, _ = self.handed.popleft()
        assert number == message.number, f"{message} was sent before {number}"

    def on_busy(self, message: MessageId) -> None:
        """The port has not taken this one, nor those after it: their numbers are free again."""
        self.is_busy = True
        while self.handed and self.handed[-1][0] >= message.number:
            self.number, item = self.handed.pop()
            self.number -= 1
            self.waiting.appendleft(replace(item, witness=None))  # it was seen when it was said first

    def on_ready(self) -> None:
        self.is_busy = False

    def forget_control(self) -> None:
        """A new meeting begins: what only the old one could use need not be said."""
        self.waiting = deque(item for item in self.waiting if not isinstance(item.message, Control))
