"""Installation: what is delivered before, in and after the transitional configuration (5.2.3, steps 1 to 5).

Departs from the thesis in two places. Step 3 discards everything that the obligation set did not send; but the reason
that it gives, a message that depends on one that is not there, holds only after the first hole, and before it figure
4.8 delivers. And when nobody has left the old configuration, all of it is delivered there, as section 4.2 says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from greenline.kernel.effects import Effect, Trace, Upcall
from greenline.kernel.identities import ConfId, Configuration, ProcId, TransId
from greenline.kernel.ports import RegularConf, TransitionalConf
from greenline.ring import form
from greenline.ring.messages import ConfRecord, Regular
from greenline.ring.processor import Processor, Ring


@dataclass(frozen=True)
class Division:
    """Where each message of the old configuration goes; the same at all that go together."""

    regular: list[int]
    transitional: list[int]
    discarded: list[int]


def divide(
    record: ConfRecord, store: Mapping[int, Regular], delivered: int, old_members: Collection[ProcId]
) -> Division:
    holes = {seq for first, last in record.holes for seq in range(first, last + 1)}
    end = record.highest_seq + 1
    aru = record.highest_seq if set(record.trans_set) == set(old_members) else record.aru
    first_hole = min(holes, default=end)
    first_unsure = min((s for s in range(aru + 1, end) if s not in holes and store[s].is_safe), default=end)
    cut = min(first_hole, first_unsure)
    rest = [seq for seq in range(max(cut, delivered + 1), end) if seq not in holes]
    obligation_set = set(record.obligation_set)
    kept = [seq for seq in rest if is_kept(seq, first_hole, store[seq].sender, obligation_set)]
    return Division(
        regular=list(range(delivered + 1, cut)),
        transitional=kept,
        discarded=sorted(set(rest) - set(kept)),
    )


def is_kept(seq: int, first_hole: int, sender: ProcId, obligation_set: set[ProcId]) -> bool:
    """After a hole only what somebody is obliged to: other messages may depend on the one that is not there."""
    return seq < first_hole or sender in obligation_set


def install(processor: Processor, record: ConfRecord, new: Ring, out: list[Effect]) -> None:
    """One atomic action: the rest of the old configuration, the transitional one, its messages, and the new one."""
    old = processor.ring
    division = divide(record, old.store, old.delivered, old.order)
    for seq in division.regular:
        old.unpacking.deliver(old.store[seq], out)
    trans_id = TransId(old.conf_id, new.conf_id)
    out.append(Upcall(TransitionalConf(Configuration(trans_id, record.trans_set))))
    for seq in division.transitional:
        old.unpacking.deliver(old.store[seq], out)
    out += [Trace("discard", position=seq, detail="it may depend on a hole") for seq in division.discarded]
    out.append(Upcall(RegularConf(new.conf)))
    processor.ring = new
    processor.my_counter = max(processor.my_counter, new.conf_id.counter)
    processor.my_obligation = frozenset({processor.me})
    processor.failures = 0
    processor.queue.begin_anew()


def install_alone(processor: Processor, counter: int, out: list[Effect]) -> None:
    """A ring of one needs no Form token: nobody else has anything to report."""
    me = processor.me
    new = processor.new_ring(ConfId(counter, me), (me,), {me: processor.incarnation})
    install(processor, form.my_record(processor), new, out)
    processor.pace.is_alone()
