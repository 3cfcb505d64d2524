"""Membership: what the phases share of it. Who is a stranger, who has lost our ring, and whom not to try again soon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from greenline.kernel.effects import Broadcast, Effect, Ignored
from greenline.kernel.identities import ProcId
from greenline.ring.memory import remember
from greenline.ring.messages import AttemptJoin, Join, Probe
from greenline.ring.processor import Holdoff, Processor, Ring

ABSURD = 1 << 32
"""No honest counter is so far ahead of ours."""
LONGEST_HOLDOFF = 32
"""In probes."""


class Standing(Enum):
    """What the sender of an Attempt Join or a Join is to a ring."""

    STRANGER = auto()
    HAS_LOST_IT = auto()
    """A member that has given the ring up, or has crashed and is back: it is lost for us as well."""
    COMPANION = auto()
    """A member that negotiates for the ring, which is intact."""
    STALE = auto()
    """It speaks of a time before this ring, or of none that can be."""


def standing(ring: Ring, counter: int, sender: ProcId, message: AttemptJoin | Join) -> Standing:
    if message.counter > counter + ABSURD:
        return Standing.STALE
    known = ring.incarnations.get(sender)
    if known is None:
        return Standing.STRANGER
    if message.incarnation > known:
        return Standing.HAS_LOST_IT
    if message.incarnation < known or message.counter < ring.conf_id.counter:
        return Standing.STALE
    is_with_us = message.is_alive and message.conf_id == ring.conf_id
    return Standing.COMPANION if is_with_us else Standing.HAS_LOST_IT


def heed(processor: Processor, sender: ProcId, message: AttemptJoin | Join, out: list[Effect]) -> bool:
    """While membership changes: does it count? A member that has lost our ring has lost it for us as well."""
    its = standing(processor.ring, processor.my_counter, sender, message)
    if its is Standing.STALE:
        out.append(Ignored("it speaks of a time before this configuration"))
        return False
    if its is Standing.HAS_LOST_IT:
        processor.lose_ring(out)
    return True


def attempt_join(processor: Processor, now: float, out: list[Effect]) -> None:
    """Say that we are here and want a bigger ring."""
    pace = processor.pace
    is_alive = processor.ring.is_alive
    echoes = pace.echoes(now)
    message = AttemptJoin(
        processor.incarnation, processor.my_counter, processor.ring.conf_id, is_alive, now, pace.measured, echoes
    )
    out.append(Broadcast(message))


def probe(processor: Processor, now: float, out: list[Effect]) -> None:
    """Show strangers that we are there, though we may have nothing to say (not in the thesis: idle rings never met)."""
    pace = processor.pace
    echoes = pace.echoes(now)
    probe = Probe(processor.incarnation, processor.my_counter, now, pace.measured, echoes)
    out.append(Broadcast(probe, but=processor.ring.order))


def hear(processor: Processor, sender: ProcId, message: AttemptJoin | Probe, now: float) -> None:
    """Learn the round trip. Who hears us, or has begun a new life, is worth another try at once."""
    if processor.pace.hears(sender, message, now):
        processor.unheard.pop(sender, None)
    if message.incarnation > processor.met.get(sender, 0):
        remember(processor.met, sender, message.incarnation)
        processor.unheard.pop(sender, None)
        processor.unmatched.pop(sender, None)


def is_held_off(processor: Processor, stranger: ProcId, now: float, out: list[Effect]) -> bool:
    """A link that works one way only, or two members that do not hear each other, would set us off for ever."""
    for reason in (processor.unheard, processor.unmatched):
        if stranger in reason and now < reason[stranger].until <= now + reason[stranger].length:
            out.append(Ignored("a stranger that was tried in vain a short while ago"))
            return True
    return False


def hold_off(processor: Processor, tried: Iterable[ProcId], now: float) -> None:
    """Those that we wanted to join and that are not with us: twice as long as the last time."""
    members = set(processor.ring.order)
    for reason, names in ((processor.unheard, set(tried)), (processor.unmatched, processor.attempted)):
        for name in members & reason.keys():
            del reason[name]
        for name in sorted(names - members):
            last = reason[name].length if name in reason else processor.settings.probe / 2
            length = min(2 * last, LONGEST_HOLDOFF * processor.settings.probe)
            remember(reason, name, Holdoff(length, now + length))
    processor.attempted.clear()


def failed_attempt(processor: Processor, members: Sequence[ProcId]) -> frozenset[ProcId]:
    """Who is left out of the next attempt, so that attempts end: the highest identifier, not counting our own (5.2.2).

    The first failure since a configuration is forgiven: most are losses that a second attempt does not meet.
    """
    processor.failures += 1
    processor.attempted |= set(members)
    if processor.failures < 2:
        return frozenset()
    return frozenset({max(set(members) - {processor.me})})
