"""Gather: collect the representatives of the next ring (5.2.2). While our old ring is alive, it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored, SetTimer, Trace
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Multicast
from greenline.ring import membership, ordering
from greenline.ring.memory import count_in
from greenline.ring.messages import AttemptJoin, Foreign, FormToken, Hurry, Join, Probe, Regular, RegularToken
from greenline.ring.moves import ToCommit, ToGather, ToOperational
from greenline.ring.processor import Processor, Timer


@dataclass(slots=True)
class Gather:
    processor: Processor
    reps: dict[ProcId, int]
    """The representatives that we have heard, with their incarnations; we are one of them."""
    failed: set[ProcId]
    joins: dict[ProcId, Join]
    """The latest Join of each: some are in Commit already."""
    tried: set[ProcId]

    timers: ClassVar = (Timer.GATHER, Timer.JOIN_RETRANSMIT)

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToCommit | ToOperational | None:
        processor = self.processor
        match event:
            case Received(AttemptJoin() | Join() as message, sender):
                self._on_join(message, sender, now, out)
            case Received(Probe() as message, sender):
                membership.hear(processor, sender, message, now)  # it will answer our Attempt Join
            case Received(Foreign() | FormToken()):
                out.append(Ignored("I am still gathering"))
            case TimerFired(Timer.GATHER):
                return self._on_gather_timeout()
            case TimerFired(Timer.JOIN_RETRANSMIT):
                membership.attempt_join(processor, now, out)
                out.append(SetTimer(Timer.JOIN_RETRANSMIT, processor.pace.join_retransmit))
            case _:
                laggard = old_ring_goes_on(self, processor, now, event, out)
                if laggard is not None:
                    self.failed.add(laggard)
        return None

    def _on_join(self, message: AttemptJoin | Join, sender: ProcId, now: float, out: list[Effect]) -> None:
        """Collect the sender, and those that it has collected."""
        processor = self.processor
        if isinstance(message, AttemptJoin):
            membership.hear(processor, sender, message, now)
        if not membership.heed(processor, sender, message, out):
            return
        if message.incarnation < self.reps.get(sender, 0):
            out.append(Ignored("it speaks of an earlier life"))
            return
        if isinstance(message, Join) and processor.me in message.failed:
            out.append(Ignored("it has given me up"))
            return
        count_in(self.reps, sender, message.incarnation)
        if isinstance(message, Join):
            self.joins[sender] = latest(self.joins.get(sender), message)
            for name, incarnation in message.reps:
                if name != processor.me:
                    count_in(self.reps, name, incarnation)

    def _on_gather_timeout(self) -> ToCommit | ToOperational:
        """Nobody was there, and our ring is as it was: go on. Otherwise agree with those who were."""
        processor = self.processor
        if processor.ring.is_alive and set(self.reps) - self.failed == {processor.me}:
            return ToOperational(frozenset(self.tried | set(self.reps)))
        return ToCommit(self.reps, frozenset(self.failed), self.joins, frozenset(self.tried))


def enter(processor: Processor, move: ToGather, now: float, out: list[Effect]) -> Gather:
    out.append(Trace("membership", detail=move.cause.value))
    if processor.ring.is_alone:
        ordering.speak_alone(processor, out)  # what was generated while a ring was being formed in vain
    membership.attempt_join(processor, now, out)
    out.append(SetTimer(Timer.GATHER, processor.pace.gather))
    out.append(SetTimer(Timer.JOIN_RETRANSMIT, processor.pace.join_retransmit))
    reps = {**move.heard, processor.me: processor.incarnation}
    tried = {move.stranger} if move.stranger is not None else set()
    return Gather(processor, reps, set(move.failed), {}, tried)


def latest(known: Join | None, heard: Join) -> Join:
    """Only the latest Join of a representative counts: an older one may speak of what it has given up since."""
    if known is not None and (known.incarnation, known.join_seq) > (heard.incarnation, heard.join_seq):
        return known
    return heard


def old_ring_goes_on(phase: object, processor: Processor, now: float, event: Event, out: list[Effect]) -> ProcId | None:
    """In Gather and Commit messages are ordered as before, if the token still comes. Who has failed to receive?"""
    ring = processor.ring
    match event:
        case Downcall(Multicast() as call):
            if ordering.on_multicast(processor, call, out):
                ordering.speak(processor, now, out)
        case Received(Regular() as packet) if packet.conf_id == ring.conf_id:
            ordering.on_regular(processor, packet, now, out)
        case Received(RegularToken() as token) if token.conf_id == ring.conf_id:
            laggard = ordering.on_token(processor, token, now, out)
            if laggard is not None:
                processor.lose_ring(out)
            return laggard
        case Received(Regular() | RegularToken()):
            out.append(Ignored("of another configuration, while membership changes"))
        case Received(Hurry() as hurry):
            ordering.on_hurry(processor, hurry, now, out)
        case TimerFired(Timer.TOKEN_LOSS):
            if ordering.is_token_lost(ring, now, out):
                processor.lose_ring(out)
        case TimerFired(Timer.TOKEN_RETRANSMIT):
            ordering.resend_token(processor, ring, out)
        case TimerFired(Timer.IDLE_HOLD):
            ordering.release_held(processor, now, out)
        case Durable(ticket):
            processor.durable_ticket = ticket
        case _:
            raise Impossible(phase, event)
    return None
