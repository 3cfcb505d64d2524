"""The division of an old configuration, against a plain twin that asks message by message."""

from __future__ import annotations

from random import Random

import pytest

from greenline.kernel.identities import ConfId
from greenline.kernel.ports import Service
from greenline.ring.form import merge
from greenline.ring.installation import Division, divide
from greenline.ring.messages import ConfRecord, Regular
from greenline.ring.repeats import ranges

CONF = ConfId(3, "p")
MEMBERS = ("p", "q", "r", "s")


def packet(seq: int, sender: str, service: Service) -> Regular:
    return Regular(CONF, sender, 1, seq, service, seq, 1, 1, b"\x90")


def plain(record: ConfRecord, store: dict[int, Regular], delivered: int) -> Division:
    """Walk through the numbers, one by one, as a person would with the rule in hand."""
    nobody_left = set(record.trans_set) == set(MEMBERS)
    regular: list[int] = []
    transitional: list[int] = []
    discarded: list[int] = []
    is_regular, met_a_hole = True, False
    for seq in range(1, record.highest_seq + 1):
        is_hole = any(first <= seq <= last for first, last in record.holes)
        if is_hole:
            is_regular, met_a_hole = False, True
            continue
        message = store.get(seq)
        if message is not None and message.service is Service.SAFE and seq > record.aru and not nobody_left:
            is_regular = False
        if seq <= delivered:
            continue
        assert message is not None
        if is_regular:
            regular.append(seq)
        elif not met_a_hole or message.sender in record.obligation_set:
            transitional.append(seq)
        else:
            discarded.append(seq)
    return Division(regular, transitional, discarded)


@pytest.mark.parametrize("seed", range(300))
def test_the_rule_and_its_plain_twin_agree(seed: int) -> None:
    chance = Random(seed)
    highest = chance.randrange(0, 14)
    aru = chance.randrange(0, highest + 1)
    holes = sorted(chance.sample(range(aru + 1, highest + 1), chance.randrange(0, highest - aru + 1)))
    trans_set = tuple(sorted(chance.sample(MEMBERS, chance.randrange(1, 5))))
    if trans_set == MEMBERS:
        holes = []  # what nobody of all has, nobody said
    obligation_set = tuple(sorted({*trans_set, *chance.sample(MEMBERS, chance.randrange(0, 2))}))
    record = ConfRecord(CONF, obligation_set, highest, aru, tuple(ranges(holes)), trans_set)
    store = {
        seq: packet(seq, chance.choice(MEMBERS), chance.choice((Service.SAFE, Service.AGREED)))
        for seq in range(1, highest + 1)
        if seq not in holes
    }
    first_stop = min([*holes, *(s for s in store if s > aru and store[s].is_safe)], default=highest + 1)
    delivered = chance.randrange(0, first_stop)
    assert divide(record, store, delivered, MEMBERS) == plain(record, store, delivered)


@pytest.mark.parametrize("seed", range(300))
def test_records_merge_to_what_nobody_has_whatever_the_order(seed: int) -> None:
    chance = Random(seed)
    held = {name: {s for s in range(1, chance.randrange(1, 12)) if chance.random() < 0.6} for name in "pqr"}
    known = {name: max([*seqs, chance.randrange(0, 12)]) for name, seqs in held.items()}
    aru = dict.fromkeys(held, 0)
    common = 0
    while all(common + 1 in seqs for seqs in held.values()):
        common += 1
    for name in aru:
        aru[name] = chance.randrange(0, common + 1)

    def record(name: str) -> ConfRecord:
        lacked = [s for s in range(1, known[name] + 1) if s not in held[name]]
        return ConfRecord(CONF, (name,), known[name], aru[name], tuple(ranges(lacked)), (name,))

    order = chance.sample(["p", "q", "r"], 3)
    both = merge(merge(record(order[0]), record(order[1])), record(order[2]))

    highest = max(known.values())
    nobody_has = [s for s in range(max(aru.values()) + 1, highest + 1) if not any(s in seqs for seqs in held.values())]
    assert both.holes == tuple(ranges(nobody_has))
    assert (both.highest_seq, both.aru) == (highest, max(aru.values()))
    assert both.trans_set == both.obligation_set == ("p", "q", "r")
