"""Rings with one mistake each: most are the naive reading of a sentence of the thesis.

Their invariants are switched off, so that what catches them is the specification, or that they come to no end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from greenline.kernel.effects import Broadcast, Effect
from greenline.kernel.events import Start
from greenline.kernel.identities import ProcId
from greenline.ring import core, evs, form, installation, invariants, membership, ordering, repeats
from greenline.ring.commit import Commit
from greenline.ring.evs import EVS
from greenline.ring.flow import Allowance, Flow
from greenline.ring.installation import Division
from greenline.ring.membership import Standing
from greenline.ring.messages import AttemptJoin, ConfRecord, Join, Regular, RegularToken, Request
from greenline.ring.moves import ToEVS, ToGather
from greenline.ring.packing import Queue
from greenline.ring.processor import Processor, Ring
from greenline.simulation.mutants.mutant import Patch, Seeded

_mutant = Seeded(invariants)


_right_divide = installation.divide


def _what_it_has(
    record: ConfRecord, store: Mapping[int, Regular], delivered: int, members: Collection[ProcId]
) -> Division:
    lacked = [seq for seq in range(record.aru + 1, record.highest_seq + 1) if seq not in store]
    return _right_divide(
        msgspec.structs.replace(record, holes=tuple(repeats.ranges(lacked))), store, delivered, members
    )


# Ordering (5.2.1).


def _safe_after_one_rotation(ring: Ring, token: RegularToken) -> None:
    ring.safe_line = max(ring.safe_line, min(token.aru, ring.my_aru))


_mutant(
    "safe-after-one-rotation",
    "delivers a safe message when the token comes with an aru that high once",
    (ordering, "raise_safe_line", _safe_after_one_rotation),
)
_mutant(
    "safe-is-agreed",
    "delivers safe messages as if they were agreed",
    (Regular, "is_safe", False),
)


def _orphan_aru(me: ProcId, my_aru: int, aru: int, aru_id: ProcId | None, full: int) -> tuple[int, ProcId | None]:
    if my_aru < aru:
        return my_aru, me
    if aru_id == me or aru_id is None:
        return my_aru, None if my_aru == full else "nobody"
    return aru, aru_id


_mutant(
    "orphan-aru",
    "who raises aru only in part does not count as the one who lowered it, so nobody may raise it again",
    (ordering, "report_aru", _orphan_aru),
)


def _served_twice(ring: Ring, token: RegularToken, _: list[Effect]) -> bool:
    return ring.is_alive and token.seq >= ring.high_seq


_mutant(
    "token-served-twice",
    "serves a token that was sent again as if it were another",
    (ordering, "accept_token", _served_twice),
)
_mutant(
    "token-sent-once",
    "never sends a token again, so every lost one costs a configuration",
    (ordering, "resend_token", lambda *_: None),
    scenario="RING-05",
)
_mutant(
    "copies-follow-the-token",
    "passes on every token that was sent again, so that copies of a late one go round behind it",
    (ordering, "pass_on_again", lambda processor, token, _, out: ordering.send_again(processor.ring, token, out)),
    scenario="RING-46",
)
_mutant(
    "followers-are-waited-for",
    "waits for a follower that somebody takes for a representative, and leaves it out when it does not answer",
    (Commit, "excuse_followers", lambda _: None),
    scenario="RING-45",
)


def _over_gaps(ring: Ring, out: list[Effect]) -> None:
    for seq in sorted(seq for seq in ring.store if seq > ring.delivered):
        packet = ring.store[seq]
        if packet.is_safe and seq > ring.safe_line:
            break
        ring.delivered = seq
        ring.unpacking.deliver(packet, out)


_mutant(
    "delivers-over-gaps",
    "delivers what it has and does not wait for what is missing before it",
    (ordering, "deliver", _over_gaps),
)


def _discard_early(ring: Ring) -> None:
    for seq in range(ring.discarded + 1, ring.delivered + 1):
        ring.store.pop(seq, None)
    ring.discarded = ring.delivered


_mutant(
    "discards-what-others-lack",
    "forgets a message once it has delivered it, though others may still ask for it",
    (ordering, "discard", _discard_early),
    (installation, "divide", _what_it_has),
)

_right_ask = repeats.ask


def _same_server(
    ring: Ring, rtr: list[Request], lacking: list[int], holders: tuple[ProcId, ...]
) -> tuple[Request, ...]:
    requests = _right_ask(ring, rtr, lacking, holders)
    return tuple(msgspec.structs.replace(request, server=None) for request in requests)


_mutant(
    "first-holder-always-answers",
    "never asks another holder, though the one that answers may be one that it cannot hear",
    (repeats, "ask", _same_server),
    scenario="RING-17",
)

_right_repeat = repeats.repeat


def _repack(
    ring: Ring,
    rtr: Iterable[Request],
    allowance: Allowance,
    to: tuple[ProcId, ...] | None,
    out: list[Effect],
    keep_foreign: bool = False,
) -> list[Request]:
    repeats: list[Effect] = []
    left = _right_repeat(ring, rtr, allowance, to, repeats, keep_foreign)
    out += [_in_a_smaller_packet(effect) if isinstance(effect, Broadcast) else effect for effect in repeats]
    return left


def _in_a_smaller_packet(effect: Broadcast) -> Broadcast:
    payloads = msgspec.msgpack.decode(effect.message.body)
    body = msgspec.msgpack.encode(payloads[: max(1, len(payloads) - 1)])
    return msgspec.structs.replace(effect, message=msgspec.structs.replace(effect.message, body=body))


_mutant(
    "packs-anew-when-it-repeats",
    "packs the messages of a repeated packet anew, so that one number stands for two contents",
    (repeats, "repeat", _repack),
)
_mutant(
    "runs-ahead-of-aru",
    "gives away numbers however far aru is behind",
    (Flow, "ahead", lambda *_: 1 << 20),
    scenario="RING-20",
)
_mutant(
    "goes-on-in-the-middle",
    "goes on with the next part of a message after a configuration change, and not from its beginning",
    (Queue, "begin_anew", lambda _: None),
    scenario="PACK-02",
)

# Membership (5.2.2).

_right_start = core.start


def _forget_counters(event: Start, *more: Any) -> object:
    return _right_start(msgspec.structs.replace(event, records=()), *more)


_mutant(
    "configuration-counter-not-stable",
    "begins each life with the same counter of configurations",
    (core, "start", _forget_counters),
)
_mutant(
    "does-not-probe",
    "says nothing to strangers while it has nothing to say, so idle rings never meet",
    (membership, "probe", lambda *_: None),
    scenario="RING-24",
)


_mutant(
    "old-joins-counted",
    "follows a Form token that was agreed upon by Joins which later ones have overtaken",
    (Commit, "is_agreed_form", lambda *_: True),
    scenario="RING-11",
)

_right_standing = membership.standing


def _alive_is_lost(ring: Ring, counter: int, sender: ProcId, message: AttemptJoin | Join) -> Standing:
    standing = _right_standing(ring, counter, sender, message)
    return Standing.HAS_LOST_IT if standing is Standing.COMPANION else standing


_mutant(
    "merges-break-rings",
    "takes its own representative's Attempt Join for the loss of the token",
    (membership, "standing", _alive_is_lost),
    scenario="RING-44",
)


def _stale_counts(ring: Ring, counter: int, sender: ProcId, message: AttemptJoin | Join) -> Standing:
    if sender in ring.incarnations and not message.is_alive:
        return Standing.HAS_LOST_IT
    return _right_standing(ring, counter, sender, message)


_mutant(
    "believes-late-joins",
    "believes an Attempt Join that was said before the present configuration",
    (membership, "standing", _stale_counts),
    scenario="RING-26",
)
_mutant(
    "never-holds-off",
    "tries a stranger that does not hear it again and again",
    (membership, "is_held_off", lambda *_: False),
    scenario="RING-33",
)
_mutant(
    "nobody-fails-to-receive",
    "waits for ever for a member that gets tokens and no messages",
    (ordering, "failed_to_receive", lambda *_: None),
    scenario="RING-22",
)

# The EVS algorithm (5.2.3).


def _aru_of_the_token(ring: Ring) -> int:
    return max(ring.safe_line, min(ring.my_aru, ring.last_token.aru)) if ring.last_token else ring.safe_line


_mutant(
    "aru-is-the-highest-seen",
    "reports as aru the highest value that it has seen on a token",
    (form, "reported_aru", _aru_of_the_token),
    (form, "_is_sound_record", lambda *_: True),
)

_BELIEVES_RECORDS: Patch = (form, "knows_me", lambda *_: True)
"""Or a processor would refuse a record that is wrong about itself, and the mistake would hurt nobody."""
_right_merge = form.merge


def _merge_with(change: Callable[[ConfRecord, ConfRecord, ConfRecord], ConfRecord]) -> Patch:
    def wrong(one: ConfRecord, two: ConfRecord) -> ConfRecord:
        return change(_right_merge(one, two), one, two)

    return form, "merge", wrong


_mutant(
    "obligation-set-of-the-first",
    "obliges the members of a transitional configuration to deliver only what the first of them said",
    _merge_with(lambda both, one, _: msgspec.structs.replace(both, obligation_set=one.obligation_set)),
    _BELIEVES_RECORDS,
    scenario="EVS-20",
)
_mutant(
    "highest-seq-of-the-first",
    "takes the highest number that the first member knows for the highest of all",
    _merge_with(
        lambda both, one, _: msgspec.structs.replace(
            both, highest_seq=one.highest_seq, holes=tuple(r for r in both.holes if r[1] <= one.highest_seq)
        )
    ),
    _BELIEVES_RECORDS,
)


def _holes_of_any(both: ConfRecord, one: ConfRecord, two: ConfRecord) -> ConfRecord:
    lacked = {seq for first, last in one.holes + two.holes for seq in range(first, last + 1) if seq > both.aru}
    return msgspec.structs.replace(both, holes=tuple(repeats.ranges(sorted(lacked))))


_mutant("holes-of-any", "takes for a hole what any member lacks, not what all lack", _merge_with(_holes_of_any))
_mutant(
    "no-obligation-memory",
    "forgets after a failure what it was obliged to, though somebody may have relied on it",
    (evs, "obligations_after", lambda phase: phase.processor.my_obligation),
    scenario="EVS-08",
)
_mutant(
    "discards-before-the-first-hole",
    "discards all that the obligation set did not send, as step 3 says, before the first hole too",
    (installation, "is_kept", lambda *args: args[2] in args[3]),
)
_mutant(
    "keeps-what-depends-on-a-hole",
    "delivers after a hole what may depend on it",
    (installation, "is_kept", lambda *_: True),
)


def _never_everybody(
    record: ConfRecord, store: Mapping[int, Regular], delivered: int, _: Collection[ProcId]
) -> Division:
    return _right_divide(record, store, delivered, ())


_mutant(
    "nobody-left-is-nothing-special",
    "puts safe messages into the transitional configuration though nobody has left",
    (installation, "divide", _never_everybody),
)


def _all_in_the_regular(
    record: ConfRecord, store: Mapping[int, Regular], delivered: int, _: Collection[ProcId]
) -> Division:
    return _right_divide(record, store, delivered, record.trans_set)


_mutant(
    "all-in-the-regular-configuration",
    "delivers in the old regular configuration also what it does not know to be safe",
    (installation, "divide", _all_in_the_regular),
)


def _take_holes(self: EVS, packet: Regular, out: list[Effect]) -> None:
    if packet.seq <= self.record.highest_seq:
        ordering.take_packet(self.processor.ring, packet, out)


_mutant(
    "holes-not-frozen",
    "fills a hole with what comes after the Form token's first rotation, though its companions do not have it",
    (EVS, "_on_old_regular", _take_holes),
    (installation, "divide", _what_it_has),
    scenario="EVS-06",
)


def _one_aru(ring: Ring, token: RegularToken) -> None:
    if ring.last_token is not None:
        both = min(max(ring.last_token.aru, ring.last_token.evs_aru), max(token.aru, token.evs_aru))
        ring.safe_line = max(ring.safe_line, min(both, ring.my_aru))


_mutant(
    "one-aru-for-both-rings",
    "goes on with the recovery's aru in the new ring, whose first messages then look safe",
    (ordering, "raise_safe_line", _one_aru),
)


def _from_its_own(phase: EVS) -> RegularToken:
    old = phase.processor.ring
    return RegularToken(phase.new.conf_id, 1, evs_aru=old.high_seq, evs_aru_id="nobody")


_mutant(
    "recovery-begins-at-its-own-number",
    "begins the recovery's aru at the representative's highest number, which nobody may raise",
    (evs, "first_token", _from_its_own),
)

_right_on_token = EVS.on_token


def _at_the_first_barrier(self: EVS, token: RegularToken, now: float, out: list[Effect]) -> object:
    self.is_at_barrier = not self.lacking()
    return _right_on_token(self, token, now, out)


_mutant(
    "installs-at-the-first-barrier",
    "installs when the recovery's aru is at the barrier once, while somebody in between may still lack messages",
    (EVS, "on_token", _at_the_first_barrier),
)

_right_fail = EVS._fail


def _aru_not_set_back(self: EVS, out: list[Effect]) -> ToGather:
    old = self.processor.ring
    old.safe_line = old.my_aru
    return _right_fail(self, out)


_mutant(
    "aru-not-set-back",
    "keeps the recovery's aru after a failure, though not every old member has so much",
    (EVS, "_fail", _aru_not_set_back),
)


def _place_holders_stay(self: EVS, out: list[Effect]) -> ToGather:
    self.processor.ring.my_aru = self.record.highest_seq
    return _right_fail(self, out)


_mutant(
    "place-holders-stay",
    "counts the place holders of a failed attempt as messages that it has",
    (EVS, "_fail", _place_holders_stay),
    (installation, "divide", _what_it_has),
)

_right_enter = evs.enter


def _trans_set_by_names(processor: Processor, move: ToEVS, out: list[Effect]) -> EVS:
    phase = _right_enter(processor, move, out)
    names = tuple(sorted(set(phase.new.order) & set(processor.ring.order)))
    phase.record = msgspec.structs.replace(phase.record, trans_set=names)
    return phase


_mutant(
    "transitional-by-names",
    "counts every old member in the new ring as one that came with it, though some came from elsewhere",
    (evs, "enter", _trans_set_by_names),
)

MUTANTS = _mutant.mutants
