"""EVS: the new ring recovers what its members lack of their old configurations, then everybody installs it (5.2.3).

Departs from the thesis: the recovery has an `aru` of its own, which begins at `barrier_seq` and not at the
representative's highest number (nobody might ever raise that), must be there on two successive visits (on one, somebody
in between may still lack messages), and ends with the installation (the new ring's numbers begin at 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from greenline.kernel.core import Impossible
from greenline.kernel.effects import CancelTimer, Effect, Ignored, SetTimer
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.ports import Multicast
from greenline.ring import form, installation, membership, ordering, repeats
from greenline.ring.messages import AttemptJoin, ConfRecord, FormToken, Join, Probe, Regular, RegularToken
from greenline.ring.moves import Cause, ToEVS, ToGather, ToOperational
from greenline.ring.processor import Processor, Ring, Timer


@dataclass(slots=True)
class EVS:
    processor: Processor
    form: FormToken
    """The Form token of the second rotation, as we passed it on."""
    new: Ring
    """The new ring: its order is kept already, and nothing of it is delivered."""
    record: ConfRecord
    """What the members of our transitional configuration have of our old one."""
    barrier_seq: int
    is_at_barrier: bool = False
    """Did we release the token with `evs_aru` at the barrier?"""

    timers: ClassVar = (Timer.FORM_RETRANSMIT,)

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToOperational | ToGather | None:
        processor = self.processor
        match event:
            case Received(RegularToken() as token) if token.conf_id == self.new.conf_id:
                if ordering.accept_token(self.new, token, out):
                    return self.on_token(token, now, out)
            case Received(Regular() as packet) if packet.conf_id == self.new.conf_id:
                ordering.take_packet(self.new, packet, out)
            case Received(Regular() as packet) if packet.conf_id == processor.ring.conf_id:
                self._on_old_regular(packet, out)
            case Received(FormToken() as token):
                return self._on_form(token, now, out)
            case Received(AttemptJoin() | Join() as message, sender):
                if isinstance(message, AttemptJoin):
                    membership.hear(processor, sender, message, now)
                if form.has_given_up(self.form, sender, message):
                    return self._fail(out)
                out.append(Ignored("strangers come later: I am recovering"))
            case Received(Probe() as message, sender):
                membership.hear(processor, sender, message, now)
            case Received():
                out.append(Ignored("of no ring that I am recovering on"))
            case TimerFired(Timer.FORM_RETRANSMIT):
                form.pass_form(processor, self.form, out)
            case TimerFired(Timer.TOKEN_RETRANSMIT):
                ordering.resend_token(processor, self.new, out)
            case TimerFired(Timer.TOKEN_LOSS):
                return self._fail(out)
            case Downcall(Multicast() as call):
                processor.queue.put(call, out)
            case Durable(ticket):
                processor.durable_ticket = ticket
            case _:
                raise Impossible(self, event)
        return None

    def _on_form(self, token: FormToken, now: float, out: list[Effect]) -> ToOperational | None:
        """Everybody knows what all have: the representative sends the first token of the new ring."""
        me = self.processor.me
        is_back = token.rotation == 2 and form.next_stop(token) == me == token.form_id.rep
        if token.form_id != self.new.conf_id or not is_back or self.new.last_token is not None:
            out.append(Ignored("a Form token that I have seen"))
            return None
        return self.on_token(first_token(self), now, out)

    def _on_old_regular(self, packet: Regular, out: list[Effect]) -> None:
        """Only what the members of the transitional configuration have: the rest would be ours alone."""
        if packet.seq > self.record.highest_seq or is_hole(self.record, packet.seq):
            out.append(Ignored("of my old configuration, but a hole for my companions"))
        else:
            ordering.take_packet(self.processor.ring, packet, out)

    def on_token(self, token: RegularToken, now: float, out: list[Effect]) -> ToOperational | None:
        """Recover; and when all have recovered, install and go on as the new ring in the same visit."""
        processor, old, new = self.processor, self.processor.ring, self.new
        out.append(CancelTimer(Timer.FORM_RETRANSMIT))
        ordering.begin_visit(processor, new, token, now)
        if token.evs_aru == self.barrier_seq and self.is_at_barrier:
            installation.install(processor, self.record, new, out)
            ordering.pass_on(processor, token, now, out)
            return ToOperational()
        allowance = new.flow.allow(token, 0)
        rtr = repeats.repeat(old, token.rtr, allowance, processor.reach(new.order), out, keep_foreign=True)
        lacking = self.lacking()
        evs_aru, evs_aru_id = ordering.report_aru(
            processor.me,
            old.my_aru if lacking else self.barrier_seq,
            token.evs_aru,
            token.evs_aru_id,
            self.barrier_seq,
        )
        self.is_at_barrier = evs_aru == self.barrier_seq
        aru, aru_id = ordering.report_aru(processor.me, new.my_aru, token.aru, token.aru_id, token.seq)
        fcc, fcc_bytes, backlog = new.flow.settle(token.fcc, token.fcc_bytes, token.backlog, allowance, 0)
        released = msgspec.structs.replace(
            token,
            token_seq=token.token_seq + 1,
            aru=aru,
            aru_id=aru_id,
            rtr=repeats.ask(old, rtr, lacking, self.record.trans_set),
            fcc=fcc,
            fcc_bytes=fcc_bytes,
            backlog=backlog,
            rotation=processor.pace.rotation,
            evs_aru=evs_aru,
            evs_aru_id=evs_aru_id,
        )
        ordering.release(processor, new, released, now, out)
        return None

    def lacking(self) -> list[int]:
        """What we still have to recover: holes have place holders."""
        old = self.processor.ring
        return [seq for seq in old.lacks(self.record.highest_seq) if not is_hole(self.record, seq)]

    def _fail(self, out: list[Effect]) -> ToGather:
        """Back to Gather, with what must not be forgotten (5.2.3, failure at the EVS state)."""
        processor = self.processor
        old = processor.ring
        processor.my_obligation = obligations_after(self)
        # `safe_line` was raised to the reported aru when we came here; `my_aru` never counted place holders.
        assert old.safe_line >= self.record.aru
        out += map(CancelTimer, (Timer.TOKEN_LOSS, Timer.TOKEN_RETRANSMIT))
        return ToGather(Cause.EVS_FAILED, failed=membership.failed_attempt(processor, self.new.order))


def enter(processor: Processor, move: ToEVS, out: list[Effect]) -> EVS:
    token = move.token
    order = tuple(seat.name for seat in token.memb_list)
    incarnations = {seat.name: seat.incarnation for seat in token.memb_list}
    new = processor.new_ring(token.form_id, order, incarnations)
    old = processor.ring
    record = next(record for record in token.confs_list if record.conf_id == old.conf_id)
    old.high_seq = max(old.high_seq, record.highest_seq)
    old.safe_line = max(old.safe_line, record.aru)
    old.asked.clear()
    processor.pace.joins(move.took)
    form.pass_form(processor, token, out)
    out.append(SetTimer(Timer.TOKEN_LOSS, processor.pace.form_loss(len(order))))
    return EVS(processor, token, new, record, barrier_of(token))


def barrier_of(token: FormToken) -> int:
    return 1 + max(record.highest_seq for record in token.confs_list)


def first_token(evs: EVS) -> RegularToken:
    return RegularToken(evs.new.conf_id, 1, evs_aru=evs.barrier_seq)


def is_hole(record: ConfRecord, seq: int) -> bool:
    return any(first <= seq <= last for first, last in record.holes)


def obligations_after(evs: EVS) -> frozenset[str]:
    """Having recovered everything we have promised what the obligation set says: somebody may have relied on it."""
    if evs.lacking():
        return evs.processor.my_obligation
    return evs.processor.my_obligation | set(evs.record.obligation_set)
