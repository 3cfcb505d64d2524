"""What a busy client sends is packed as a series: whoever unpacks it finds the same actions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenline.kernel.actions import Action, Read, Series, declared, open_packed, opened, pack, pack_series, unpack
from greenline.kernel.codec import Garbled

HEAD = b"what all of them say at first"
bodies = st.lists(st.binary(max_size=40), min_size=1, max_size=20)


@given(bodies, st.sampled_from([b"", b"short", HEAD]), st.integers(1, 2**40), st.integers(0, 9))
def test_the_same_actions_come_out(tails: list[bytes], head: bytes, first: int, received: int) -> None:
    actions = tuple(Action("c@7", number, head + tail, received) for number, tail in enumerate(tails, first))
    packed = pack(actions)
    assert unpack(packed) == actions
    assert declared(packed) == len(actions)


def busy(count: int = 6) -> list[Action]:
    return [Action("c@7", number, HEAD + bytes([number, number]), 2) for number in range(3, 3 + count)]


def test_those_of_a_busy_client_are_a_series() -> None:
    series = open_packed(pack(tuple(busy())))
    assert series == Series("c@7", 3, 2, HEAD, tuple(bytes([number, number]) for number in range(3, 9)))


@pytest.mark.parametrize(
    "other",
    [
        Action("d@7", 5, HEAD, 2),
        Action("c@7", 6, HEAD, 2),
        Action("c@7", 5, HEAD, 3),
        Action("c@7", 5, HEAD, 2, is_relaxed=True),
        Action("c@7", 5, HEAD, 2, reads=(Read(b"what", b"that"),)),
        Action("c@7", 5, b"something else", 2),
    ],
)
def test_one_that_is_different_makes_it_none(other: Action) -> None:
    actions = busy()
    actions[2] = other
    packed = pack(tuple(actions))
    assert isinstance(open_packed(packed), tuple)
    assert unpack(packed) == tuple(actions)


def test_a_series_that_is_not_what_it_says_is_garbled() -> None:
    packed = pack(tuple(busy()))
    more = packed[:1] + (7).to_bytes(4) + packed[5:]
    for garbled in (
        more,
        packed[:-1],
        packed + b"\0",
        packed[:4],
        packed[:1],
        pack_series(Series("c@7", 1, 0, HEAD, ())),
    ):
        with pytest.raises(Garbled):
            unpack(garbled)
    assert opened((more,)) == [None] * 7


def test_who_says_a_number_without_end_is_none() -> None:
    packed = pack(tuple(busy()))
    assert declared(packed[:1] + b"\xff\xff\xff\xff" + packed[5:]) == 0
