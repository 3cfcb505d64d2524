"""Nobody gets in without the key, nothing counts twice, and nobody takes another's name."""

from __future__ import annotations

import pytest

from greenline.kernel.identities import ProcId
from greenline.node.sealing import (
    KEY_BYTES,
    WINDOW,
    Impostor,
    Keyring,
    Kind,
    Met,
    Opener,
    Refused,
    Sealer,
    Unmet,
    overhead,
)

KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
RING = Keyring({1: KEY}, 1)
UID = b"uid of p"
MEMBERS = frozenset({"p", "q", "r"})


def sealer(ring: Keyring | None = RING, name: ProcId = "p", incarnation: int = 1, uid: bytes = UID) -> Sealer:
    return Sealer(ring, name, incarnation, uid)


def opener(ring: Keyring | None = RING, met: dict[ProcId, Met] | None = None) -> Opener:
    known = {} if met is None else met
    return Opener(ring, "r", MEMBERS, known, known.__setitem__)


def meet(receiver: Opener, sender: Sealer) -> None:
    """The sender answers the receiver's challenge."""
    assert receiver.open(sender.seal_for("r", receiver.challenge, Kind.ANSWER)).kind == Kind.ANSWER


def refused(receiver: Opener, packet: bytes) -> str:
    with pytest.raises(Refused) as reason:
        receiver.open(packet)
    return str(reason.value)


def test_a_member_that_was_met_is_heard_and_costs_few_bytes() -> None:
    sender, receiver = sealer(), opener()
    meet(receiver, sender)
    packet = sender.seal(b"frame")
    assert receiver.open(packet)[:3] == ("p", Kind.TO_ALL, b"frame")
    assert len(packet) == len(b"frame") + overhead("p")
    assert b"frame" not in packet


def test_who_does_not_have_the_key_or_is_no_member_is_refused_and_counted_by_reason() -> None:
    sender, receiver = sealer(), opener()
    meet(receiver, sender)
    good = sender.seal(b"frame")
    assert refused(receiver, sealer(Keyring({1: OTHER}, 1)).seal(b"frame")) == "not authentic"
    assert refused(receiver, sealer(Keyring({2: KEY}, 2)).seal(b"frame")) == "an unknown key"
    assert refused(receiver, sealer(None).seal(b"frame")) == "not encrypted, but we are"
    assert refused(opener(None), good) == "encrypted, but we are not"
    assert refused(receiver, sealer(name="x").seal(b"frame")) == "a member that we did not know"
    assert refused(receiver, sealer(Keyring({1: OTHER}, 1), name="x").seal(b"frame")) == "not authentic"
    assert refused(opener(None), sealer(None, name="x").seal(b"frame")) == "not a member"
    assert refused(receiver, sealer(name="r").seal(b"frame")) == "our own"
    assert refused(receiver, b"\x01" + good[1:]) == "another version"
    assert refused(receiver, good[:20]) == "too short"
    for place in range(len(good)):
        broken = good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]
        assert refused(receiver, broken)
    for end in range(len(good)):
        assert refused(receiver, good[:end])
    assert receiver.open(good).frame == b"frame", "none of that has done any harm"


def test_a_recorded_packet_is_refused_and_a_reordered_one_is_not() -> None:
    sender, receiver = sealer(), opener()
    meet(receiver, sender)
    packets = [sender.seal(str(number).encode()) for number in range(WINDOW + 10)]
    for number in (3, 1, 0, 2):
        assert receiver.open(packets[number]).frame == str(number).encode()
    for number in range(4):
        assert refused(receiver, packets[number]) == "seen before"
    receiver.open(packets[-1])
    assert refused(receiver, packets[4]) == "seen before", "too far behind to be told from a recorded one"
    assert receiver.open(packets[20]).frame == b"20"
    assert refused(receiver, packets[20]) == "seen before"


def test_what_is_for_one_is_opened_by_that_one_only() -> None:
    sender, receiver = sealer(), opener()
    meet(receiver, sender)
    assert refused(receiver, sender.seal_for("q", b"the token")) == "not authentic"
    assert receiver.open(sender.seal_for("r", b"the token")).frame == b"the token"


def test_a_receiver_that_has_just_started_believes_nothing_that_was_recorded() -> None:
    sender, first_life = sealer(), opener()
    meet(first_life, sender)
    recorded = [sender.seal_for("r", first_life.challenge, Kind.ANSWER), *(sender.seal(b"join us") for _ in range(9))]
    receiver = opener()
    for packet in recorded:
        with pytest.raises(Unmet):
            receiver.open(packet)
    meet(receiver, sender)
    for packet in recorded:
        assert refused(receiver, packet) == "seen before", "what was said before the answer counts as seen"
    assert receiver.open(sender.seal(b"new")).frame == b"new"


def test_a_challenge_is_heard_from_somebody_whom_we_have_not_met() -> None:
    assert opener().open(sealer().seal_for("r", b"number", Kind.CHALLENGE)) == ("p", Kind.CHALLENGE, b"number", False)


def test_a_new_life_is_believed_when_it_answers_and_the_old_one_is_over_then() -> None:
    met: dict[ProcId, Met] = {}
    receiver = opener(met=met)
    first, second = sealer(), sealer(incarnation=2)
    meet(receiver, first)
    assert refused(receiver, sealer(Keyring({1: OTHER}, 1), incarnation=9).seal(b"x")) == "not authentic"
    assert refused(receiver, second.seal(b"hello")) == "not met yet"
    receiver.open(first.seal(b"still here"))
    meet(receiver, second)
    assert refused(receiver, first.seal(b"late")) == "an earlier life"
    assert met == {"p": Met(UID, 2)}
    assert refused(opener(met=met), first.seal(b"later")) == "an earlier life"
    assert refused(receiver, sealer(incarnation=2).seal(b"a copied machine")) == "an earlier life"


def test_another_node_that_takes_the_name_is_told_from_the_one_that_was_met() -> None:
    receiver = opener(met={"p": Met(UID, 3)})
    with pytest.raises(Impostor) as caught:
        receiver.open(sealer(incarnation=7, uid=b"somebody").seal_for("r", receiver.challenge, Kind.ANSWER))
    assert (caught.value.name, caught.value.uid) == ("p", b"somebody")
    meet(receiver, sealer(incarnation=3))


def test_keys_are_rotated_while_packets_flow() -> None:
    both, new = Keyring({1: KEY, 2: OTHER}, 1), Keyring({2: OTHER}, 2)
    sender, receiver = sealer(), opener()
    meet(receiver, sender)
    receiver.rekey(both)
    assert receiver.open(sender.seal(b"a")).frame == b"a"
    sender.rekey(Keyring(both.keys, 2))
    late = sealer().seal(b"of another life")
    assert receiver.open(sender.seal(b"b")).frame == b"b"
    receiver.rekey(new)
    assert receiver.open(sender.seal(b"c")).frame == b"c"
    assert refused(receiver, late) == "an unknown key"
    sender.rekey(RING)
    assert refused(receiver, sender.seal(b"d")) == "an unknown key"


def test_without_a_key_names_and_counters_still_hold() -> None:
    sender, receiver = sealer(None), opener(None)
    meet(receiver, sender)
    packet = sender.seal(b"frame")
    assert b"frame" in packet
    assert receiver.open(packet).frame == b"frame"
    assert refused(receiver, packet) == "seen before"


@pytest.mark.parametrize(
    ("keys", "current", "message"),
    [
        ({1: b"abc"}, 1, "a cluster key has 32 bytes, and key 1 has 3"),
        ({0: KEY}, 0, "a key has a number from 1 to 255, and this one has 0"),
        ({1: KEY}, 2, "key 2 should seal, but there is no such key"),
    ],
)
def test_a_wrong_key_is_one_clear_message(keys: dict[int, bytes], current: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Keyring(keys, current)
