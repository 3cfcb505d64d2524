"""Form: the Form token goes round the members of the new ring and learns what each has (5.2.2).

On its first rotation every member adds itself and what it holds; what it receives of its old configuration after that
it ignores, so that what it has reported stays true. On the second everybody learns what all have reported.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from greenline.kernel.core import Impossible
from greenline.kernel.effects import Effect, Ignored, Send, SetTimer, Withdraw
from greenline.kernel.events import Downcall, Durable, Event, Received, TimerFired
from greenline.kernel.identities import ProcId, in_order
from greenline.kernel.ports import Multicast
from greenline.ring import membership
from greenline.ring.messages import AttemptJoin, ConfRecord, FormToken, Join, Probe, Seat
from greenline.ring.moves import Cause, ToEVS, ToForm, ToGather
from greenline.ring.ordering import SPAN
from greenline.ring.processor import Processor, Ring, Timer
from greenline.ring.repeats import ranges


@dataclass(slots=True)
class Form:
    processor: Processor
    token: FormToken
    """The Form token as we passed it on."""
    passed_at: float

    timers: ClassVar = (Timer.FORM_LOSS, Timer.FORM_RETRANSMIT)

    def handle(self, now: float, event: Event, out: list[Effect]) -> ToEVS | ToGather | None:
        processor = self.processor
        match event:
            case Received(FormToken() as token):
                return self._on_form(token, now, out)
            case Received(AttemptJoin() | Join() as message, sender):
                if isinstance(message, AttemptJoin):
                    membership.hear(processor, sender, message, now)
                if has_given_up(self.token, sender, message):
                    return self._fail(out)
                out.append(Ignored("strangers come later: I am forming a ring"))
            case Received(Probe() as message, sender):
                membership.hear(processor, sender, message, now)
            case Received():
                out.append(Ignored("what I have of my old configuration is reported"))
            case TimerFired(Timer.FORM_RETRANSMIT):
                pass_form(processor, self.token, out)
            case TimerFired(Timer.FORM_LOSS):
                return self._fail(out)
            case Downcall(Multicast() as call):
                processor.queue.put(call, out)
            case Durable(ticket):
                processor.durable_ticket = ticket
            case _:
                raise Impossible(self, event)
        return None

    def _on_form(self, token: FormToken, now: float, out: list[Effect]) -> ToEVS | None:
        me = self.processor.me
        if token.form_id != self.token.form_id:
            out.append(Ignored("the Form token of another ring"))
        elif not is_sound(self.processor, token) or not knows_me(self.processor, token):
            out.append(Ignored("a Form token that makes no sense"))
        elif token.form_id.rep == me and token.rotation == 1 and next_stop(token) == me:
            return ToEVS(second_rotation(token), now - self.passed_at)
        elif token.form_id.rep != me and token.rotation == 2 and next_stop(token) == me:
            return ToEVS(_visited(token), now - self.passed_at)
        else:
            out.append(Ignored("a Form token that I have seen"))
        return None

    def _fail(self, out: list[Effect]) -> ToGather:
        if self.processor.ceiling_ticket > self.processor.durable_ticket:
            out.append(Withdraw(self.processor.ceiling_ticket))  # what still waits for the disk is not sent any more
        members = [seat.name for seat in self.token.memb_list] + [name for name, _ in self.token.join_list]
        return ToGather(Cause.FORM_FAILED, failed=membership.failed_attempt(self.processor, members))


def enter(processor: Processor, move: ToForm, now: float, out: list[Effect]) -> Form:
    """From here on the token of the old ring is consumed."""
    processor.lose_ring(out)
    members = max(len(move.token.memb_list), len(move.token.join_list))
    pass_form(processor, move.token, out)
    out.append(SetTimer(Timer.FORM_LOSS, processor.pace.form_loss(members)))
    return Form(processor, move.token, now)


def pass_form(processor: Processor, token: FormToken, out: list[Effect]) -> None:
    """To the next member; again after a while, until there is a sign that it came round."""
    gate = processor.secure(token.form_id.counter, out)
    out.append(Send(next_stop(token), token, gate=gate))
    out.append(SetTimer(Timer.FORM_RETRANSMIT, processor.pace.form_retransmit))


def has_given_up(token: FormToken, sender: ProcId, message: AttemptJoin | Join) -> bool:
    """Does somebody who has agreed to this ring gather again, without having installed it?"""
    for seat in token.memb_list:
        if seat.name == sender:
            since = message.counter - token.form_id.counter
            is_later = 0 <= since < membership.ABSURD and message.conf_id != token.form_id
            return message.incarnation > seat.incarnation or (message.incarnation == seat.incarnation and is_later)
    return False


# Where the Form token goes (figure 5.3).


def next_stop(token: FormToken) -> ProcId:
    """The members that a representative has added, then the next representative, and at last back to the first."""
    if token.visited < len(token.memb_list):
        return token.memb_list[token.visited].name
    if token.rotation == 1:
        seated = {seat.name for seat in token.memb_list}
        for name, _ in token.join_list:
            if name not in seated:
                return name
    return token.form_id.rep


def second_rotation(token: FormToken) -> FormToken:
    """The representative of the new ring knows everything, and sends it round."""
    return msgspec.structs.replace(token, rotation=2, visited=1)


def _visited(token: FormToken) -> FormToken:
    return msgspec.structs.replace(token, visited=token.visited + 1)


# Agreeing to it.


def is_my_seat(processor: Processor, token: FormToken) -> bool:
    """Has our representative added us, as we are? Our counters only rise, so an old Form token is not agreed to."""
    if token.visited >= len(token.memb_list) or not _is_new(processor, token):
        return False
    return token.memb_list[token.visited] == Seat(processor.me, processor.incarnation, processor.ring.conf_id)


def is_my_turn(processor: Processor, token: FormToken) -> bool:
    """Is it time to add ourselves, and those we represent?"""
    return token.visited == len(token.memb_list) and next_stop(token) == processor.me and _is_new(processor, token)


def _is_new(processor: Processor, token: FormToken) -> bool:
    return (
        token.rotation == 1
        and token.form_id.rep != processor.me
        and processor.my_counter < token.form_id.counter < processor.my_counter + membership.ABSURD
        and is_sound(processor, token)
    )


def is_sound(processor: Processor, token: FormToken) -> bool:
    """Could an honest member have sent it? What it says of our old configuration must agree with what we know of it."""
    names = [seat.name for seat in token.memb_list]
    if len(set(names)) < len(names) or token.visited > len(names):
        return False
    if (names and names[0] != token.form_id.rep) or token.form_id.rep not in dict(token.join_list):
        return False
    return len(token.join_list) > 1 and all(_is_sound_record(processor.ring, record) for record in token.confs_list)


def knows_me(processor: Processor, token: FormToken) -> bool:
    """When it comes back to us it has our seat, and our old configuration with what we reported of it."""
    ring = processor.ring
    mine = [record for record in token.confs_list if record.conf_id == ring.conf_id]
    return (
        Seat(processor.me, processor.incarnation, ring.conf_id) in token.memb_list
        and len(mine) == 1
        and processor.me in mine[0].trans_set
        and mine[0].highest_seq >= ring.high_seq
        and mine[0].aru >= reported_aru(ring)
        and processor.my_obligation <= set(mine[0].obligation_set)
    )


def _is_sound_record(ring: Ring, record: ConfRecord) -> bool:
    last = record.aru
    for first, end in record.holes:
        if not last < first <= end <= record.highest_seq:
            return False
        last = end
    if record.highest_seq - record.aru > SPAN:
        return False
    if record.conf_id != ring.conf_id:
        return True
    return record.aru <= ring.my_aru and set(record.trans_set) <= ring.incarnations.keys()


def agree(processor: Processor, token: FormToken, left_out: Collection[ProcId] = ()) -> ToForm:
    """Add ourselves and what we have; as a representative, also those who follow us."""
    processor.my_counter = token.form_id.counter
    memb_list = token.memb_list
    if token.visited == len(memb_list):
        memb_list += my_seats(processor, token, left_out)
    return ToForm(
        msgspec.structs.replace(
            token,
            memb_list=memb_list,
            visited=token.visited + 1,
            confs_list=merged(token.confs_list, my_record(processor)),
        )
    )


def my_seats(processor: Processor, token: FormToken, left_out: Collection[ProcId]) -> tuple[Seat, ...]:
    """We first, then those whom we represent at this moment, unless they have come for themselves."""
    ring = processor.ring
    taken = {name for name, _ in token.join_list} | {seat.name for seat in token.memb_list} | set(left_out)
    followers = [name for name in processor.represents if name != processor.me and name not in taken]
    at = ring.order.index(processor.me)
    followers.sort(key=lambda name: (ring.order.index(name) - at) % len(ring.order))
    mine = Seat(processor.me, processor.incarnation, ring.conf_id)
    return (mine, *(Seat(name, ring.incarnations[name], ring.conf_id) for name in followers))


# What we have of our old configuration (5.2.3).


def my_record(processor: Processor) -> ConfRecord:
    ring = processor.ring
    return ConfRecord(
        ring.conf_id,
        in_order(processor.my_obligation),
        ring.high_seq,
        reported_aru(ring),
        tuple(ranges(ring.lacks(ring.high_seq))),
        (processor.me,),
    )


def reported_aru(ring: Ring) -> int:
    """What we know every member to have: the thesis's "highest aru known" must not be a value that somebody passed on
    before others could lower it."""
    return ring.safe_line


def merged(confs_list: tuple[ConfRecord, ...], mine: ConfRecord) -> tuple[ConfRecord, ...]:
    """Our record into the one of our old configuration."""
    others = tuple(record for record in confs_list if record.conf_id != mine.conf_id)
    record = next((record for record in confs_list if record.conf_id == mine.conf_id), None)
    return (*others, mine if record is None else merge(record, mine))


def merge(one: ConfRecord, two: ConfRecord) -> ConfRecord:
    """Holes are what nobody has: lacking in both, or given away after the other's last number and lacking in one."""
    aru = max(one.aru, two.aru)
    lacked_by_one, lacked_by_two = _numbers(one.holes), _numbers(two.holes)
    holes = lacked_by_one & lacked_by_two
    holes |= {seq for seq in lacked_by_one if seq > two.highest_seq}
    holes |= {seq for seq in lacked_by_two if seq > one.highest_seq}
    return ConfRecord(
        one.conf_id,
        in_order({*one.obligation_set, *two.obligation_set}),
        max(one.highest_seq, two.highest_seq),
        aru,
        tuple(ranges(sorted(seq for seq in holes if seq > aru))),
        in_order({*one.trans_set, *two.trans_set}),
    )


def _numbers(holes: tuple[tuple[int, int], ...]) -> set[int]:
    return {seq for first, last in holes for seq in range(first, last + 1)}
