"""The journal: a core over the group communication port that keeps every bundle, in order, on disk."""

from __future__ import annotations

import msgspec

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Append, Barrier, Downcall, Effect, Upcall
from greenline.kernel.events import Durable, Event, Start
from greenline.kernel.identities import MessageId, ProcId
from greenline.kernel.ports import Deliver, Multicast, RegularConf, Sent, Service, TransitionalConf


class Submit(msgspec.Struct, frozen=True, gc=False):
    """From above: order this, and keep it everywhere."""

    bundle: bytes


class Kept(msgspec.Struct, frozen=True, gc=False):
    """To above: it has its place, and is on disk here. Our own were submitted in this order."""

    message: MessageId
    bundle: bytes
    is_ours: bool


class Among(msgspec.Struct, frozen=True, gc=False):
    """To above: who is in the configuration now."""

    members: tuple[ProcId, ...]


class Body(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    message: MessageId
    bundle: bytes


class Place(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    message: MessageId


Records = Body | Place


class Journal:
    phase = None

    def __init__(self) -> None:
        self._me = ""
        self._incarnation = 0
        self._number = 0
        self._ticket = 0

    def handle(self, _: float, event: Event) -> list[Effect]:
        match event:
            case Upcall(Deliver(message, _, payload)):
                self._ticket += 1
                is_ours = message.sender == self._me and message.incarnation == self._incarnation
                record = Place(message) if is_ours else Body(message, payload)
                kept = Upcall(Kept(message, payload, is_ours), gate=self._ticket)
                return [Append(record), Barrier(self._ticket), kept]
            case Downcall(Submit(bundle)):
                self._number += 1
                self._ticket += 1
                message = MessageId(self._me, self._incarnation, self._number)
                call = Downcall(Multicast(message, Service.SAFE, bundle), gate=self._ticket)
                return [Append(Body(message, bundle)), Barrier(self._ticket), call]
            case Start(me, incarnation):
                self._me, self._incarnation = me, incarnation
            case Upcall(RegularConf(conf)):
                return [Upcall(Among(conf.members))]
            case Durable() | Upcall(Sent() | TransitionalConf()):
                pass
            case _:
                raise Impossible(self, event)
        return []
