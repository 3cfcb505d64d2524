"""Ordering: a token, a sequence, and everybody delivers in its order (5.2.1).

Serves Operational, and Gather and Commit while the old ring is alive: "the old ring is used as long as possible".
Departs from the thesis where its sentences leave messages or liveness behind; each place says so.
"""

from __future__ import annotations

import msgspec

from greenline.kernel.effects import Broadcast, CancelTimer, Effect, Ignored, Send, SetTimer, Trace, Upcall
from greenline.kernel.identities import ProcId
from greenline.kernel.ports import Multicast, Sent
from greenline.ring import repeats
from greenline.ring.flow import Allowance
from greenline.ring.messages import Hurry, Regular, RegularToken
from greenline.ring.processor import Processor, Ring, Timer
from greenline.ring.settings import Settings

SPAN = 1 << 16
"""No honest token is so far ahead of what we have."""
QUIET_ROTATIONS = 2
FEW = 5
"""Packets that are said before the token is passed on, in any case."""
ROUNDING = 0.001
"""Of a timeout: less is not worth another timer."""


def on_multicast(processor: Processor, call: Multicast, out: list[Effect]) -> bool:
    """Take a message. Is it time to speak at once: are we alone, or do we hold the token of an idle ring?"""
    queue = processor.queue
    was_waiting = bool(queue.waiting)
    if not queue.put(call, out):
        return False
    ring = processor.ring
    if not ring.is_alive:
        return False
    if ring.is_alone or ring.held is not None:
        return True
    token = ring.last_token
    if token is not None and token.is_idle and not was_waiting and ring.representative != ring.me:
        out.append(Send(ring.representative, Hurry(ring.conf_id)))
    return False


def speak(processor: Processor, now: float, out: list[Effect]) -> None:
    """Say what waits, without waiting for the token."""
    if processor.ring.is_alone:
        speak_alone(processor, out)
    else:
        release_held(processor, now, out)


def speak_alone(processor: Processor, out: list[Effect]) -> None:
    """A ring of one has no token: what it says is safe at once."""
    ring, queue = processor.ring, processor.queue
    while queue.waiting:
        packet = next_packet(processor, ring, ring.high_seq + 1, out)
        seq = packet.seq
        ring.my_aru = ring.high_seq = ring.safe_line = ring.delivered = ring.discarded = seq
        ring.unpacking.deliver(packet, out)
    queue.relieve(out)


def on_regular(processor: Processor, packet: Regular, now: float, out: list[Effect]) -> None:
    """Hold a packet of our configuration, and deliver what can be delivered."""
    ring = processor.ring
    is_news = packet.seq > ring.high_seq
    if take_packet(ring, packet, out):
        if is_news:
            ring.heard_at = now
        token = ring.last_token
        if token is not None and packet.seq > token.seq and not ring.is_passed:
            # Somebody had the token after us.
            ring.is_passed = True
            out.append(CancelTimer(Timer.TOKEN_RETRANSMIT))
        if packet.seq == ring.delivered + 1:
            deliver(ring, out)


def take_packet(ring: Ring, packet: Regular, out: list[Effect]) -> bool:
    """Into the store, unless we have had it."""
    seq = packet.seq
    if seq <= ring.my_aru or seq in ring.store:
        out.append(Ignored("a packet that I have"))
        return False
    if seq > ring.my_aru + ring.flow.farthest or packet.sender not in ring.incarnations:
        out.append(Ignored("a packet that is out of reach"))
        return False
    ring.keep(packet)
    return True


def accept_token(ring: Ring, token: RegularToken, out: list[Effect]) -> bool:
    """Is it the next token of this ring? One that was sent again, or that comes to a ring we gave up, is consumed."""
    if not ring.is_alive:
        out.append(Ignored("the token of a ring that I gave up"))
    elif ring.is_alone:
        out.append(Ignored("a ring of one has no token"))
    elif token.token_seq <= ring.last_token_seq:
        out.append(Ignored("a token that I have seen"))
    elif not (max(token.aru, ring.high_seq) <= token.seq <= ring.my_aru + SPAN):
        out.append(Ignored("a token that nobody could have sent"))
    else:
        return True
    return False


def on_token(processor: Processor, token: RegularToken, now: float, out: list[Effect]) -> ProcId | None:
    """Serve the token: repeat what is missed, say what is new, report, pass it on. Who has failed to receive?"""
    ring = processor.ring
    if not accept_token(ring, token, out):
        pass_on_again(processor, token, now, out)
        return None
    begin_visit(processor, ring, token, now)
    if (laggard := failed_to_receive(processor, ring, token)) is not None:
        return laggard
    if is_idle(processor, ring, token):
        ring.held = token
        out.append(CancelTimer(Timer.TOKEN_LOSS))
        out.append(CancelTimer(Timer.TOKEN_RETRANSMIT))
        out.append(SetTimer(Timer.IDLE_HOLD, processor.pace.idle_hold))
        deliver(ring, out)
    else:
        pass_on(processor, token, now, out)
    return None


def begin_visit(processor: Processor, ring: Ring, token: RegularToken, now: float) -> None:
    """What the token tells, before we change it."""
    if ring.representative != ring.me:
        processor.pace.told(token.rotation)
    elif ring.released_at is not None and token.unclean <= ring.last_token_seq:
        processor.pace.rotated(now - ring.released_at)
    ring.last_token_seq = token.token_seq
    ring.high_seq = max(ring.high_seq, token.seq)
    raise_safe_line(ring, token)


def raise_safe_line(ring: Ring, token: RegularToken) -> None:
    """Two successive rotations: what we released the token with, and what it comes back with.

    The thesis counts two releases; but we may have raised `aru` ourselves on the second, while somebody still lacks
    messages. What came back unharmed was lowered by nobody.
    """
    if ring.last_token is not None:
        ring.safe_line = max(ring.safe_line, min(ring.last_token.aru, token.aru))


def failed_to_receive(processor: Processor, ring: Ring, token: RegularToken) -> ProcId | None:
    """Who holds `aru` back at the same place for ever, getting tokens but no messages, is left behind."""
    place = token.aru, token.aru_id
    if token.aru == token.seq or place != ring.held_back_at:
        ring.held_back_at, ring.held_back = place, 0
        return None
    ring.held_back += 1
    if ring.held_back < processor.settings.fail_to_receive or token.aru_id == ring.me:
        return None
    return token.aru_id


def is_idle(processor: Processor, ring: Ring, token: RegularToken) -> bool:
    """The representative holds the token of a ring in which nobody has anything to say or to repeat."""
    if ring.representative != ring.me:
        return False
    said_nothing = ring.last_token is not None and ring.last_token.seq == token.seq
    needs_nothing = token.aru == token.seq and not token.rtr and not token.backlog and not processor.queue.waiting
    ring.quiet = ring.quiet + 1 if said_nothing and needs_nothing else 0
    is_hurried, ring.is_hurried = ring.is_hurried, False
    # It has come round as an idle one, so everybody expects it to be held.
    return token.is_idle and ring.quiet >= QUIET_ROTATIONS and not is_hurried


def on_hurry(processor: Processor, hurry: Hurry, now: float, out: list[Effect]) -> None:
    ring = processor.ring
    if hurry.conf_id != ring.conf_id or not ring.is_alive:
        out.append(Ignored("a hurry of another configuration"))
    elif ring.held is None:
        ring.is_hurried = True  # the token is on its way to us: it will not be held
    else:
        release_held(processor, now, out)


def release_held(processor: Processor, now: float, out: list[Effect]) -> None:
    """The idle ring's token goes on."""
    ring = processor.ring
    token, ring.held = ring.held, None
    assert token is not None, "there is a token to go on"
    out.append(CancelTimer(Timer.IDLE_HOLD))
    pass_on(processor, token, now, out)


def pass_on(processor: Processor, token: RegularToken, now: float, out: list[Effect]) -> None:
    """Repeats first, as safe delivery waits for the oldest hole; then news; then the token; only then delivery."""
    ring, queue = processor.ring, processor.queue
    allowance = ring.flow.allow(token, queue.packets)
    to = processor.reach(ring.order)
    unanswered = repeats.repeat(ring, token.rtr, allowance, to, out)
    packets = say_new(processor, ring, token, allowance, out)
    early = len(packets) - after_the_token(processor.settings, len(packets))
    out += [Broadcast(packet, to=to) for packet in packets[:early]]
    seq = token.seq + len(packets)
    if packets:
        ring.quiet = 0
    aru, aru_id = report_aru(ring.me, ring.my_aru, token.aru, token.aru_id, seq)
    lacking = ring.lacks(_last_seq(ring) if processor.settings.grace else seq)
    rtr = repeats.ask(ring, unanswered, lacking, ring.order)
    fcc, fcc_bytes, backlog = ring.flow.settle(token.fcc, token.fcc_bytes, token.backlog, allowance, queue.packets)
    was_idle = ring.quiet >= QUIET_ROTATIONS if ring.representative == ring.me else token.is_idle
    released = RegularToken(
        token.conf_id,
        token.token_seq + 1,
        seq,
        aru,
        aru_id,
        rtr,
        fcc,
        fcc_bytes,
        backlog,
        was_idle and not packets and not rtr and not backlog,
        processor.pace.rotation,
        token.unclean,
        token.evs_aru,
        token.evs_aru_id,
    )
    release(processor, ring, released, now, out)
    out += [Broadcast(packet, to=to) for packet in packets[early:]]
    deliver(ring, out)
    queue.relieve(out)


def after_the_token(settings: Settings, packets: int) -> int:
    """How many packets are said after the token was passed on, so that the next processor can begin meanwhile.

    None of a few: the token would overtake them, and whoever lacks them lowers aru, which costs a rotation.
    """
    return min(settings.accelerated, max(0, packets - FEW)) if settings.grace else 0


def release(processor: Processor, ring: Ring, token: RegularToken, now: float, out: list[Effect]) -> None:
    """Pass the token on, and keep it until there is a sign that it arrived."""
    ring.last_token = token
    ring.last_token_seq = token.token_seq
    ring.released_at = now
    ring.heard_at = now
    ring.resent = 0
    ring.is_passed = False
    is_held = token.is_idle and ring.representative != ring.me  # on its way back to us
    retransmit = processor.pace.token_retransmit(is_held)
    ring.loss_after = processor.pace.token_loss(is_held)
    out.append(Send(ring.successor, token))
    out.append(SetTimer(Timer.TOKEN_RETRANSMIT, retransmit))
    out.append(SetTimer(Timer.TOKEN_LOSS, ring.loss_after))


def is_token_lost(ring: Ring, now: float, out: list[Effect]) -> bool:
    """Neither the token nor a new message was heard for so long (5.2.2): a rotation in which all speak takes long.

    Only what is new counts: repeats would keep a dead ring alive.
    """
    ring.heard_at = min(ring.heard_at, now)  # a clock may be set back
    left = ring.heard_at + ring.loss_after - now
    if left < ROUNDING * ring.loss_after:
        return True
    out.append(SetTimer(Timer.TOKEN_LOSS, left))
    return False


def resend_token(processor: Processor, ring: Ring, out: list[Effect]) -> None:
    """A token that was lost once is no failure: send it again, a few times (not in the thesis)."""
    assert ring.last_token is not None, "there was a token to wait for"
    if ring.resent < processor.settings.retransmits:
        ring.resent += 1
        send_again(ring, ring.last_token, out)
        out.append(SetTimer(Timer.TOKEN_RETRANSMIT, processor.pace.token_retransmit(is_held=False)))


def pass_on_again(processor: Processor, token: RegularToken, now: float, out: list[Effect]) -> None:
    """Somebody waits for an idle token that we have passed on: it may be lost after us, and we would wait for long.

    Not if we did so just now: then it is under way, and a second one would follow it round for as long as it goes.
    """
    ring = processor.ring
    last = ring.last_token
    if token.unclean != token.token_seq or last is None or last.token_seq != token.token_seq + 1 or not last.is_idle:
        return  # it was not sent again, is not the one that we passed on last, or our own patience is short
    age = now - ring.released_at if ring.released_at is not None else 0.0
    if ring.is_alive and age >= processor.pace.token_retransmit(is_held=False) / 2:
        send_again(ring, last, out)


def send_again(ring: Ring, token: RegularToken, out: list[Effect]) -> None:
    """Nobody holds it on the way, although the ring may be idle: it is waited for."""
    out.append(Trace("repeat", detail="token"))
    out.append(Send(ring.successor, msgspec.structs.replace(token, unclean=token.token_seq, is_idle=False)))


def say_new(
    processor: Processor, ring: Ring, token: RegularToken, allowance: Allowance, out: list[Effect]
) -> list[Regular]:
    """New packets, with the next numbers. Each is held before anything leaves."""
    queue = processor.queue
    packets: list[Regular] = []
    ahead = ring.flow.ahead(token)
    while queue.waiting and len(packets) < ahead and not allowance.is_spent:
        packet = next_packet(processor, ring, token.seq + len(packets) + 1, out)
        allowance.spend(len(packet.body))
        ring.keep(packet)
        packets.append(packet)
    return packets


def next_packet(processor: Processor, ring: Ring, seq: int, out: list[Effect]) -> Regular:
    """The head of the queue gets its place."""
    parcel = processor.queue.next_parcel()
    if parcel.messages:
        out += [Upcall(Sent(message)) for message in parcel.messages]
    return Regular(
        ring.conf_id,
        ring.me,
        processor.incarnation,
        seq,
        parcel.service,
        parcel.first,
        parcel.part,
        parcel.parts,
        parcel.body,
    )


def report_aru(me: ProcId, my_aru: int, aru: int, aru_id: ProcId | None, full: int) -> tuple[int, ProcId | None]:
    """Lower it to what we have; raise it if it was us who lowered it, or if nobody did.

    The thesis lets raise it who finds the value that it lowered it to; but when that one was lowered further by
    another, and raised by that other to the first value, nobody may raise it again. So the token says whose it is.
    """
    if my_aru < aru or aru_id == me or aru_id is None:
        return my_aru, None if my_aru == full else me
    return aru, aru_id


def deliver(ring: Ring, out: list[Effect]) -> None:
    """In order: up to the first gap, or the first safe message of which we do not know that all have it."""
    store, safe_line, unpack = ring.store, ring.safe_line, ring.unpacking.deliver
    following = ring.delivered + 1
    while (packet := store.get(following)) is not None:
        if following > safe_line and packet.is_safe:
            break
        ring.delivered = following
        following += 1
        unpack(packet, out)
    discard(ring)


def discard(ring: Ring) -> None:
    """What we have delivered and everybody has, nobody will ask for, in this ring or in a recovery."""
    gone = min(ring.safe_line, ring.delivered)
    for seq in range(ring.discarded + 1, gone + 1):
        del ring.store[seq]
    ring.discarded = max(ring.discarded, gone)


def _last_seq(ring: Ring) -> int:
    return ring.last_token.seq if ring.last_token is not None else 0
