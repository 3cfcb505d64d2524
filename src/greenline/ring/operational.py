"""Operational: messages are ordered and delivered; membership does not change (5.2.1, and 5.2.2 for what ends it)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored, Send, SetTimer
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Multicast
from greenline.ring import form, membership, ordering
from greenline.ring.membership import Standing
from greenline.ring.memory import remember
from greenline.ring.messages import AttemptJoin, Foreign, FormToken, Hurry, Join, Probe, Regular, RegularToken
from greenline.ring.moves import Cause, ToForm, ToGather, ToOperational
from greenline.ring.processor import Processor, Timer


@dataclass(slots=True)
class Operational:
    processor: Processor

    timers: ClassVar = (Timer.PROBE,)

    def keep(self, packet: Regular, now: float) -> bool:
        """The next packet, of which nothing follows yet: it is only kept. The path of nearly all."""
        ring = self.processor.ring
        seq = packet.seq
        token = ring.last_token
        if (
            seq != ring.high_seq + 1
            or seq != ring.my_aru + 1
            or seq == ring.delivered + 1
            or packet.conf_id != ring.conf_id
            or packet.sender not in ring.incarnations
            or packet.sender == ring.me
            or not (ring.is_passed or token is None or seq <= token.seq)
        ):
            return False
        ring.store[seq] = packet
        ring.my_aru = ring.high_seq = seq
        ring.heard_at = now
        return True

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToGather | ToForm | None:
        processor = self.processor
        match event:
            case Received(Regular() as packet) if packet.conf_id == processor.ring.conf_id:
                ordering.on_regular(processor, packet, now, out)
            case Downcall(Multicast() as call):
                if ordering.on_multicast(processor, call, out):
                    ordering.speak(processor, now, out)
            case Received(RegularToken() as token) if token.conf_id == processor.ring.conf_id:
                laggard = ordering.on_token(processor, token, now, out)
                if laggard is not None:
                    return self._lose(Cause.FAILED_TO_RECEIVE, out, failed=frozenset({laggard}))
            case Received(RegularToken()):
                out.append(Ignored("the token of another configuration"))
            case Received(Regular() as packet):
                return self._on_other_regular(packet, now, out)
            case Received(AttemptJoin() | Join() as message, sender):
                return self._on_join(message, sender, now, out)
            case Received(Probe() as message, sender):
                membership.hear(processor, sender, message, now)
                return self._on_probe(message, sender, now, out)
            case Received(Foreign() as told):
                if told.conf_id == processor.ring.conf_id and told.stranger not in processor.ring.incarnations:
                    return self._on_stranger(told.stranger, now, out)
                out.append(Ignored("tells of a stranger who is none, or tells it to another configuration"))
            case Received(Hurry() as hurry):
                ordering.on_hurry(processor, hurry, now, out)
            case Received(FormToken() as token):
                return self._on_form(token, out)
            case TimerFired(Timer.TOKEN_LOSS):
                if ordering.is_token_lost(processor.ring, now, out):
                    return self._lose(Cause.TOKEN_LOSS, out)
            case TimerFired(Timer.TOKEN_RETRANSMIT):
                ordering.resend_token(processor, processor.ring, out)
            case TimerFired(Timer.IDLE_HOLD):
                ordering.release_held(processor, now, out)
            case TimerFired(Timer.PROBE):
                membership.probe(processor, now, out)
                out.append(SetTimer(Timer.PROBE, processor.settings.probe))
            case Durable(ticket):
                processor.durable_ticket = ticket
            case _:
                raise Impossible(self, event)
        return None

    def _lose(self, cause: Cause, out: list[Effect], failed: frozenset[ProcId] = frozenset()) -> ToGather:
        self.processor.lose_ring(out)
        return ToGather(cause, failed=failed)

    def _on_other_regular(self, packet: Regular, now: float, out: list[Effect]) -> ToGather | None:
        """A message of another configuration: foreign, late, or the sign that a member has gone on without us."""
        ring = self.processor.ring
        if packet.sender not in ring.incarnations:
            return self._on_stranger(packet.sender, now, out)
        if packet.conf_id < ring.conf_id or packet.conf_id.counter > ring.conf_id.counter + membership.ABSURD:
            out.append(Ignored("a late message of an older configuration"))
            return None
        return self._lose(Cause.MEMBER_LOST_IT, out)

    def _on_probe(self, probe: Probe, sender: ProcId, now: float, out: list[Effect]) -> ToGather | None:
        ring = self.processor.ring
        if sender not in ring.incarnations:
            return self._on_stranger(sender, now, out)
        ahead = probe.counter - ring.conf_id.counter
        if probe.incarnation > ring.incarnations[sender] or 0 < ahead < membership.ABSURD:
            return self._lose(Cause.MEMBER_LOST_IT, out)  # it has gone on without us
        return None

    def _on_join(self, message: AttemptJoin | Join, sender: ProcId, now: float, out: list[Effect]) -> ToGather | None:
        processor = self.processor
        if isinstance(message, AttemptJoin):
            membership.hear(processor, sender, message, now)
        match membership.standing(processor.ring, processor.my_counter, sender, message):
            case Standing.STRANGER:
                if isinstance(message, Join) and processor.me in dict(message.reps):
                    processor.unheard.pop(sender, None)
                return self._on_stranger(sender, now, out, {sender: message.incarnation})
            case Standing.HAS_LOST_IT:
                processor.lose_ring(out)
                return ToGather(Cause.MEMBER_LOST_IT, heard={sender: message.incarnation})
            case Standing.COMPANION:
                out.append(Ignored("our representative negotiates for us"))
            case _:
                out.append(Ignored("it speaks of a time before this configuration"))
        return None

    def _on_stranger(
        self, stranger: ProcId, now: float, out: list[Effect], heard: dict[ProcId, int] | None = None
    ) -> ToGather | None:
        """Somebody who is not a member of the ring: a representative sets out to join it, others tell theirs."""
        processor = self.processor
        if not processor.is_representative:
            last = processor.told_of.get(stranger)
            if last is None or not 0 <= now - last < processor.settings.probe:
                remember(processor.told_of, stranger, now)
                out.append(Send(processor.ring.representative, Foreign(processor.ring.conf_id, stranger)))
            return None
        if membership.is_held_off(processor, stranger, now, out):
            return None
        return ToGather(Cause.FOREIGN_MESSAGE, heard=heard or {}, stranger=stranger)

    def _on_form(self, token: FormToken, out: list[Effect]) -> ToForm | None:
        """A member follows its representative into the new ring."""
        processor = self.processor
        if processor.is_representative or not form.is_my_seat(processor, token):
            out.append(Ignored("a Form token that is not for me"))
            return None
        return form.agree(processor, token)


def enter(processor: Processor, move: ToOperational, now: float, out: list[Effect]) -> Operational:
    membership.hold_off(processor, move.tried, now)
    if processor.is_representative:
        membership.probe(processor, now, out)
        out.append(SetTimer(Timer.PROBE, processor.settings.probe))
    if processor.ring.is_alone:
        ordering.speak_alone(processor, out)
    return Operational(processor)
