"""Nobody gets in without the key, and nothing counts twice."""

from __future__ import annotations

import pytest

from greenline.node.sealing import KEY_BYTES, OVERHEAD, WINDOW, Opener, Refused, Sealer

KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
MEMBERS = frozenset({"p", "q"})


def refused(opener: Opener, packet: bytes) -> str:
    with pytest.raises(Refused) as reason:
        opener.open(packet)
    return str(reason.value)


def test_a_member_is_heard_and_costs_few_bytes() -> None:
    packet = Sealer({1: KEY}, 1, "p", 1).seal(b"frame")
    assert Opener({1: KEY}, MEMBERS).open(packet) == ("p", b"frame")
    assert len(packet) <= len(b"frame") + OVERHEAD
    assert b"frame" not in packet


def test_who_does_not_have_the_key_or_is_no_member_is_refused_and_counted_by_reason() -> None:
    opener = Opener({1: KEY}, MEMBERS)
    good = Sealer({1: KEY}, 1, "p", 1).seal(b"frame")
    assert refused(opener, Sealer({1: OTHER}, 1, "p", 1).seal(b"frame")) == "not authentic"
    assert refused(opener, Sealer({2: KEY}, 2, "p", 1).seal(b"frame")) == "an unknown key"
    assert refused(opener, Sealer({1: KEY}, 1, "x", 1).seal(b"frame")) == "not a member"
    assert refused(opener, b"\x02" + good[1:]) == "another version"
    assert refused(opener, good[:20]) == "too short"
    for place in range(len(good)):
        broken = good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]
        assert refused(opener, broken)
    assert opener.open(good) == ("p", b"frame"), "none of that has done any harm"


def test_a_recorded_packet_is_refused_and_a_reordered_one_is_not() -> None:
    sealer, opener = Sealer({1: KEY}, 1, "p", 1), Opener({1: KEY}, MEMBERS)
    packets = [sealer.seal(str(number).encode()) for number in range(WINDOW + 10)]
    for number in (3, 1, 0, 2):
        assert opener.open(packets[number])[1] == str(number).encode()
    for number in range(4):
        assert refused(opener, packets[number]) == "seen before"
    opener.open(packets[-1])
    assert refused(opener, packets[4]) == "seen before", "too far behind to be told from a recorded one"
    assert opener.open(packets[20])[1] == b"20"
    assert refused(opener, packets[20]) == "seen before"


def test_a_new_life_is_believed_when_it_is_authentic_and_the_old_one_is_over_then() -> None:
    opener = Opener({1: KEY}, MEMBERS)
    first, second = Sealer({1: KEY}, 1, "p", 1), Sealer({1: KEY}, 1, "p", 2)
    opener.open(first.seal(b"1"))
    assert refused(opener, Sealer({1: OTHER}, 1, "p", 9).seal(b"x")) == "not authentic"
    opener.open(first.seal(b"still here"))
    opener.open(second.seal(b"2"))
    assert refused(opener, first.seal(b"late")) == "an earlier life"
    assert opener.seen == {"p": 2}
    assert refused(Opener({1: KEY}, MEMBERS, opener.seen), first.seal(b"later")) == "an earlier life"


def test_keys_can_be_rotated_while_packets_flow() -> None:
    opener = Opener({1: KEY, 2: OTHER}, MEMBERS)
    old, new = Sealer({1: KEY}, 1, "p", 1), Sealer({1: KEY, 2: OTHER}, 2, "q", 1)
    assert opener.open(old.seal(b"a")) == ("p", b"a")
    assert opener.open(new.seal(b"b")) == ("q", b"b")


def test_a_key_of_the_wrong_size_is_one_clear_message() -> None:
    with pytest.raises(ValueError, match="a cluster key has 32 bytes, and this one has 3"):
        Opener({1: b"abc"}, MEMBERS)
